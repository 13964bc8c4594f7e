// The page side of live pictures: one canvas per picture, and a receipt once they are painted.

export default {
  render({model, el}) {
    const caption = document.createElement("div");
    const place = document.createElement("div");
    place.style.cssText = "display:flex;flex-wrap:wrap;gap:8px";
    caption.style.cssText = "font-size:smaller";
    caption.textContent = "Waiting for the first picture.";
    el.append(place, caption);
    const canvases = [];
    const paint = async (message, buffers) => {
      const images = await Promise.all(buffers.map(
        (buffer, i) => createImageBitmap(new Blob([buffer], {type: message.types[i]}))));
      while (canvases.length < images.length) canvases.push(place.appendChild(document.createElement("canvas")));
      while (canvases.length > images.length) canvases.pop().remove();
      images.forEach((image, i) => {
        const canvas = canvases[i];
        if (canvas.width !== image.width) canvas.width = image.width;
        if (canvas.height !== image.height) canvas.height = image.height;
        canvas.getContext("2d").drawImage(image, 0, 0);
        image.close();
      });
      caption.textContent = message.caption;
      await new Promise(requestAnimationFrame);
      model.send({painted: message.number});
    };
    model.on("msg:custom", paint);
    model.send({painted: -1});
    return () => model.off("msg:custom", paint);
  },
};
