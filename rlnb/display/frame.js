// The page's half of a frame: it finds the way to a port of the kernel's machine, and shows what answers there.

export default {
  async render({model, el}) {
    const port = model.get("port");
    const config = document.getElementById("jupyter-config-data");
    const base = config ? JSON.parse(config.textContent).baseUrl : null;
    // Without a Jupyter page around it (VS Code, say) the kernel's machine is taken to be this one.
    const url = base ? new URL(`${base}proxy/${port}/`, location.origin).href : `http://127.0.0.1:${port}/`;
    const link = Object.assign(document.createElement("a"), {href: url, target: "_blank", rel: "noopener"});
    link.textContent = `${model.get("title")}, in a tab of its own`;
    const place = document.createElement("div");
    el.append(place, link);
    if (base) {
      const answer = await fetch(url).catch(() => null);
      if (!answer || !answer.ok) {
        place.textContent = answer && answer.status === 404
          ? "The Jupyter server does not hand this through: install jupyter-server-proxy beside it."
          : "This has ended. Run the cell again.";
        link.remove();
        return;
      }
    }
    const frame = Object.assign(document.createElement("iframe"), {src: url});
    frame.style.cssText = `width:100%;height:${model.get("height")}px;border:0`;
    place.append(frame);
  },
};
