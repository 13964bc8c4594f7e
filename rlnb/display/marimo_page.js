// The page side of a place in marimo's output: HTML that the kernel replaces, and that replaces a widget above it.

export default {
  render({model, el}) {
    const place = el.appendChild(document.createElement("div"));
    const draw = () => {
      place.innerHTML = model.get("html");
      if (!model.get("html") || !model.get("replaces")) return;
      // marimo keeps the element of a widget that was closed.
      for (const other of document.querySelectorAll("marimo-anywidget"))
        if (other.dataset.modelId?.includes(model.get("replaces"))) other.style.display = "none";
    };
    model.on("change:html", draw);
    draw();
    return () => model.off("change:html", draw);
  },
};
