// The radiograph viewer of a page: window, inversion, zoom and pan over the file's values at their full depth.

import { fetchBytes, fetchFacts } from "./volume.js";

for (const root of document.querySelectorAll("[data-radiograph]")) start(root, JSON.parse(root.dataset.radiograph));

function start(root, data) {
  const find = (selector) => root.querySelector(selector);
  const canvas = find("canvas");
  const context = canvas.getContext("2d", { alpha: false });
  const fields = { low: find(".low"), high: find(".high") };
  const state = { low: 0, high: 1, inverted: false, zoom: 1, x: 0.5, y: 0.5, drag: "window" };
  let image = null; // { facts, stored, picture: an off-screen canvas }
  let due = false;
  let stale = true;

  const choice = find(".view");
  for (const one of data.images) choice.append(new Option(one.name, one.name));
  choice.closest(".choice").hidden = data.images.length < 2;
  choice.addEventListener("change", () => open(choice.value));
  wire();
  open(data.images[0].name);

  async function open(name) {
    root.dataset.state = "loading";
    say(`Loading ${name} …`);
    const source = data.images.find((one) => one.name === name);
    try {
      const [facts, bytes] = await Promise.all([fetchFacts(source.facts), fetchBytes(source.url)]);
      if (choice.value !== name) return;
      const stored = facts.bits === 8 ? new Uint8Array(bytes) : new Uint16Array(bytes);
      if (stored.length !== facts.width * facts.height) throw new Error("The file ends early.");
      image = { name, facts, stored, picture: Object.assign(document.createElement("canvas"), { width: facts.width, height: facts.height }) };
      Object.assign(state, { zoom: 1, x: 0.5, y: 0.5 });
      reset();
      find(".about").textContent = about(facts);
      canvas.setAttribute("aria-label", `${name} radiograph, ${facts.width} x ${facts.height} pixels. Arrow keys move, plus and minus zoom.`);
      drawNow();
      root.dataset.state = "ready";
      performance.mark("first-image");
      say("");
    } catch (error) {
      root.dataset.state = "failed";
      say(`${name} can't be shown. ${error.message}`);
    }
  }

  function about(facts) {
    const depth = facts.bits === 8
      ? "The file holds 8 bits: 256 grey levels, already windowed by whoever made it; a narrower window shows no more than these."
      : facts.exact ? "All values of the file, none rounded." : "Values rounded to 65,536 steps.";
    const inverted = facts.inverted ? " The file shows its least value white; that is followed." : "";
    return `${facts.width} x ${facts.height} pixels. ${facts.about}. ${depth}${inverted}`;
  }

  function say(text) {
    find(".status").textContent = text;
    find(".status").hidden = !text;
  }

  // -- drawing ---------------------------------------------------------------------------------------------------------------

  function draw(repaint = false) {
    stale = stale || repaint;
    if (due || !image) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      drawNow();
    });
  }

  function drawNow() {
    if (stale) paint();
    const frame = canvas.getBoundingClientRect();
    const scale = globalThis.devicePixelRatio || 1;
    const [width, height] = [Math.max(1, Math.round(frame.width * scale)), Math.max(1, Math.round(frame.height * scale))];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const { facts, picture } = image;
    const fit = Math.min(width / facts.width, height / (facts.height * facts.aspect)) * state.zoom;
    const [across, down] = [facts.width * fit, facts.height * facts.aspect * fit];
    context.fillStyle = "black";
    context.fillRect(0, 0, width, height);
    context.imageSmoothingEnabled = fit < 3; // single pixels are shown as such
    context.imageSmoothingQuality = "high";
    context.drawImage(picture, width / 2 - state.x * across, height / 2 - state.y * down, across, down);
    state.fit = fit / scale;
  }

  // From stored values to 256 greys by a table: a window costs one look-up a pixel.
  function paint() {
    stale = false;
    const { facts, stored, picture } = image;
    const table = new Uint32Array(facts.bits === 8 ? 256 : 65536);
    const inverted = state.inverted !== facts.inverted;
    const span = state.high - state.low;
    for (let i = 0; i < table.length; i++) {
      let share = (i * facts.slope + facts.intercept - state.low) / span;
      share = share < 0 ? 0 : share > 1 ? 1 : share;
      const grey = Math.round(255 * (inverted ? 1 - share : share));
      table[i] = 0xff000000 | (grey << 16) | (grey << 8) | grey;
    }
    const pixels = new Uint32Array(stored.length);
    for (let i = 0; i < stored.length; i++) pixels[i] = table[stored[i]];
    picture.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), facts.width, facts.height), 0, 0);
  }

  // -- window ----------------------------------------------------------------------------------------------------------------

  function reset() {
    setWindow(image.facts.low, image.facts.high);
  }

  function setWindow(low, high) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return;
    state.low = low;
    state.high = high > low ? high : low + image.facts.slope;
    fields.low.value = number(state.low);
    fields.high.value = number(state.high);
    draw(true);
  }

  function number(value) {
    return Math.abs(value) >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3);
  }

  function setInverted(on) {
    state.inverted = on;
    find(".inverted").checked = on;
    draw(true);
  }

  // -- moving ----------------------------------------------------------------------------------------------------------------

  function zoomBy(factor, event) {
    if (!image) return;
    const old = state.zoom;
    state.zoom = Math.min(24, Math.max(1, old * factor));
    if (event && state.zoom !== old) {
      // What is under the pointer stays there.
      const frame = canvas.getBoundingClientRect();
      const { facts } = image;
      const change = 1 / state.fit - old / (state.fit * state.zoom);
      state.x += ((event.clientX - frame.left - frame.width / 2) * change) / facts.width;
      state.y += ((event.clientY - frame.top - frame.height / 2) * change) / (facts.height * facts.aspect);
    }
    if (state.zoom === 1) Object.assign(state, { x: 0.5, y: 0.5 });
    bound();
    draw();
  }

  function pan(across, down, from) {
    const { facts } = image;
    state.x = from.x - across / (state.fit * facts.width);
    state.y = from.y - down / (state.fit * facts.height * facts.aspect);
    bound();
    draw();
  }

  function bound() {
    state.x = Math.min(1, Math.max(0, state.x));
    state.y = Math.min(1, Math.max(0, state.y));
  }

  function tell(event) {
    const where = find(".where");
    if (!image || !state.fit) return;
    const frame = canvas.getBoundingClientRect();
    const { facts, stored } = image;
    const column = Math.floor(state.x * facts.width + (event.clientX - frame.left - frame.width / 2) / state.fit);
    const row = Math.floor(state.y * facts.height + (event.clientY - frame.top - frame.height / 2) / (state.fit * facts.aspect));
    const inside = column >= 0 && row >= 0 && column < facts.width && row < facts.height;
    where.textContent = inside ? `Column ${column + 1}, row ${row + 1}: value ${number(stored[row * facts.width + column] * facts.slope + facts.intercept)}` : "";
  }

  function wire() {
    find(".tools").addEventListener("submit", (event) => event.preventDefault());
    let drag = null;
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      if (!image) return;
      canvas.focus({ preventScroll: true });
      const kind = event.button === 2 ? "window" : event.button === 1 || event.shiftKey ? "pan" : state.drag;
      if (event.button === 1) event.preventDefault();
      drag = { kind, x: event.clientX, y: event.clientY, from: { ...state } };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      tell(event);
      if (!drag) return;
      const [across, down] = [event.clientX - drag.x, event.clientY - drag.y];
      if (drag.kind === "pan") pan(across, down, drag.from);
      else dragWindow(drag.from, across, down);
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (drag = null));
    canvas.addEventListener("dblclick", () => zoomBy(0));
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        zoomBy(Math.exp(-(event.deltaMode === 0 ? event.deltaY : event.deltaY * 30) / 400), event);
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => {
      if (!image) return;
      const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      if (step) pan(...step, { ...state });
      else if (event.key === "+" || event.key === "=") zoomBy(1.25);
      else if (event.key === "-") zoomBy(0.8);
      else if (event.key === "0") zoomBy(0);
      else if (event.key === "i") setInverted(!state.inverted);
      else return;
      event.preventDefault();
    });
    for (const field of Object.values(fields)) field.addEventListener("change", () => image && setWindow(Number(fields.low.value), Number(fields.high.value)));
    find(".inverted").addEventListener("change", (event) => setInverted(event.target.checked));
    find(".reset").addEventListener("click", () => {
      if (!image) return;
      setInverted(false);
      reset();
      zoomBy(0);
    });
    for (const button of root.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoomBy(Number(button.dataset.zoom)));
    for (const box of root.querySelectorAll("[name=drag]")) box.addEventListener("change", () => (state.drag = box.value));
    new ResizeObserver(() => draw()).observe(canvas);
  }

  // Sideways is contrast, up and down is brightness, as on a workstation.
  function dragWindow(from, across, down) {
    const width = from.high - from.low;
    const centre = (from.low + from.high) / 2 + (down * width) / 250;
    const half = Math.max(width / 500, (width * (1 + across / 250)) / 2);
    setWindow(centre - half, centre + half);
  }
}
