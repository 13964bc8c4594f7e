// The page side of live pictures: one canvas per picture, and a receipt once they are painted. Where the camera can be
// turned, a drag turns it, Ctrl and the wheel or two fingers zoom, and a double click resets it.

const EVERY_MS = 100;

function listen(place, send) {
  const pointers = new Map();
  let sum = {right: 0, down: 0, zoom: 1}, timer = null;
  const add = (right, down, zoom) => {
    sum = {right: sum.right + right, down: sum.down + down, zoom: sum.zoom * zoom};
    timer ??= setTimeout(() => { send(sum); sum = {right: 0, down: 0, zoom: 1}; timer = null; }, EVERY_MS);
  };
  const reset = () => {
    clearTimeout(timer);
    [sum, timer] = [{right: 0, down: 0, zoom: 1}, null];
    send({reset: true});
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.max(1, Math.hypot(a.x - b.x, a.y - b.y));
  };
  place.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    event.target.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
  });
  place.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const before = pointers.size === 2 ? spread() : 0;
    pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
    if (before) return add(0, 0, before / spread());
    const radians = Math.PI / event.target.clientWidth;
    add((event.clientX - last.x) * radians, (event.clientY - last.y) * radians, 1);
  });
  for (const end of ["pointerup", "pointercancel"])
    place.addEventListener(end, (event) => pointers.delete(event.pointerId));
  place.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls
    event.preventDefault();
    add(0, 0, Math.exp(Math.sign(event.deltaY) * Math.min(0.2, Math.abs(event.deltaY) / 500)));
  }, {passive: false});
  place.addEventListener("dblclick", reset);
  place.style.cssText += ";touch-action:none;cursor:grab";
}

export default {
  render({model, el}) {
    const [place, caption, camera] = ["div", "div", "code"].map((tag) => document.createElement(tag));
    place.style.cssText = "display:flex;flex-wrap:wrap;gap:8px";
    caption.style.cssText = "font-size:smaller";
    camera.title = "Drag to turn the camera, scroll with Ctrl to zoom, double-click to reset.";
    caption.textContent = "Waiting for the first picture.";
    el.append(place, caption, camera);
    const canvases = [];
    let turns = false;
    const paint = async (message, buffers) => {
      const images = await Promise.all(buffers.map(
        (buffer, i) => createImageBitmap(new Blob([buffer], {type: message.types[i]}))));
      while (canvases.length < images.length) {
        canvases.push(place.appendChild(document.createElement("canvas")));
        canvases.at(-1).style.maxWidth = "100%";
      }
      while (canvases.length > images.length) canvases.pop().remove();
      images.forEach((image, i) => {
        const canvas = canvases[i];
        if (canvas.width !== image.width) canvas.width = image.width;
        if (canvas.height !== image.height) canvas.height = image.height;
        canvas.getContext("2d").drawImage(image, 0, 0);
        image.close();
      });
      caption.textContent = message.caption;
      camera.textContent = message.place;
      if (message.place && !turns) {
        turns = true;
        listen(place, (gesture) => model.send(gesture));
      }
      await new Promise(requestAnimationFrame);
      model.send({painted: message.number});
    };
    model.on("msg:custom", paint);
    model.send({painted: -1});
    return () => model.off("msg:custom", paint);
  },
};
