// The pointer on a drawing: it scrubs, and a wheel zooms and moves the time axis.

/** Drag to scrub; with a wheel, zoom. */
export function pointer(element, view, timeOf, goTo) {
  let down = false;
  const move = event => goTo(timeOf(event.clientX - element.getBoundingClientRect().left));
  element.addEventListener("pointerdown", event => { down = true; element.setPointerCapture(event.pointerId); move(event); });
  element.addEventListener("pointermove", event => { if (down) move(event); });
  element.addEventListener("pointerup", () => { down = false; });
  element.addEventListener("pointercancel", () => { down = false; });
  element.addEventListener("wheel", event => {
    if (!(event.ctrlKey || event.metaKey || event.shiftKey || event.deltaX)) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.pan(event.deltaX * view.pixel);
    else view.zoom(Math.exp(event.deltaY / 300), view.time(event.clientX - element.getBoundingClientRect().left));
  }, { passive: false });
}
