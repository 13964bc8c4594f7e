// A picture that tells where it is clicked.

export default {
  render({model, el}) {
    const image = document.createElement("img");
    image.style.cssText = "max-width:100%;cursor:zoom-in";
    let url = null;
    const draw = () => {
      if (url) URL.revokeObjectURL(url);
      url = URL.createObjectURL(new Blob([model.get("value")], {type: "image/png"}));
      image.src = url;
    };
    image.addEventListener("click", (event) =>
      model.send({x: event.offsetX / image.clientWidth, y: event.offsetY / image.clientHeight}));
    model.on("change:value", draw);
    draw();
    el.append(image);
    return () => { model.off("change:value", draw); URL.revokeObjectURL(url); };
  },
};
