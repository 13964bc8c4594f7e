// The page side of a place in marimo's output: HTML that the kernel replaces.

export default {
  render({model, el}) {
    const place = el.appendChild(document.createElement("div"));
    const draw = () => { place.innerHTML = model.get("html"); };
    model.on("change:html", draw);
    draw();
    return () => model.off("change:html", draw);
  },
};
