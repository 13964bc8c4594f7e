// The page side of a frame: it finds the URL of a port on the kernel's machine, and shows that URL.

export default {
  async render({model, el}) {
    const port = model.get("port");
    const config = document.getElementById("jupyter-config-data");
    const base = config ? JSON.parse(config.textContent).baseUrl : null;
    // Outside a Jupyter page (VS Code, for example), assume that the kernel runs on this machine.
    const url = base ? new URL(`${base}proxy/${port}/`, location.origin).href : `http://127.0.0.1:${port}/`;
    const link = Object.assign(document.createElement("a"), {href: url, target: "_blank", rel: "noopener"});
    link.textContent = `Open ${model.get("title")} in a new tab`;
    const place = document.createElement("div");
    el.append(place, link);
    if (base) {
      const answer = await fetch(url).catch(() => null);
      if (!answer || !answer.ok) {
        place.textContent = answer && answer.status === 404
          ? "The Jupyter server cannot reach this port. Install jupyter-server-proxy in its environment."
          : "The server behind this frame has ended. Run the cell again.";
        link.remove();
        return;
      }
    }
    const frame = Object.assign(document.createElement("iframe"), {src: url});
    frame.style.cssText = `width:100%;height:${model.get("height")}px;border:0`;
    place.append(frame);
  },
};
