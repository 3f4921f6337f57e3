// The volume viewer of a page: one to four series side by side, linked by where they are in the patient.

import { apply } from "./geometry.js";
import { COLOURS, Panel } from "./panel.js";
import { load } from "./volume.js";

const FAR = 10;

for (const root of document.querySelectorAll("[data-viewer]")) new Viewer(root, JSON.parse(root.dataset.viewer)).start();

function Viewer(root, data) {
  const find = (selector) => root.querySelector(selector);
  const all = (selector) => [...root.querySelectorAll(selector)];
  const template = find("template");
  const grid = find(".panels");
  const panels = [];
  const masks = {};
  const state = {
    plane: "axial", linked: true, drag: "point", inverted: false, filling: 0.4, outlined: true, brain: false, crosshair: true,
    hidden: new Set(),
  };
  const windows = new Map(); // by series, so that it is kept when panels change

  this.start = async () => {
    wire();
    await arrange(1);
    panels[0].panel?.finish(); // so that the mark says when the picture is there, not when it was asked for
    performance.mark("first-volume");
    root.dataset.state = panels[0].frame.dataset.state;
    await showMasks();
  };

  // -- panels ----------------------------------------------------------------------------------------------------------------

  async function arrange(count) {
    while (panels.length > count) {
      const one = panels.pop();
      one.frame.remove();
      one.panel?.close();
    }
    grid.dataset.count = count;
    const added = [];
    while (panels.length < count) {
      const one = newPanel(panels.length);
      panels.push(one);
      added.push(one);
    }
    for (const one of added) await open(one, one.choice.value);
  }

  function newPanel(number) {
    const frame = template.content.firstElementChild.cloneNode(true);
    grid.append(frame);
    const part = (name) => frame.querySelector(name);
    const one = {
      frame, number, canvas: part("canvas"), choice: part(".series"), low: part(".low"), high: part(".high"), preset: part(".preset"),
      slider: part(".slider"), where: part(".where"), status: part(".status"), about: part(".about"),
    };
    for (const field of frame.querySelectorAll("[data-label]")) field.setAttribute("aria-label", `${field.dataset.label}, view ${number + 1}`);
    for (const series of data.series) one.choice.append(new Option(series.name, series.name));
    one.choice.value = data.first[Math.min(number, data.first.length - 1)];
    one.choice.closest(".choice").hidden = data.series.length < 2;
    one.choice.addEventListener("change", () => open(one, one.choice.value));
    one.slider.addEventListener("input", () => move(one, () => (one.panel.slice = Number(one.slider.value) - 1)));
    for (const field of [one.low, one.high]) field.addEventListener("change", () => setWindow(one, Number(one.low.value), Number(one.high.value)));
    one.preset.addEventListener("change", () => usePreset(one, one.preset.value));
    pointing(one);
    return one;
  }

  async function open(one, name) {
    const series = data.series.find((each) => each.name === name);
    one.frame.dataset.state = "loading";
    say(one, `Loading ${name} …`);
    try {
      // Fetching and setting up go on at the same time.
      const [volume, panel] = await Promise.all([load(series), one.panel ?? Panel.on(one.canvas)]);
      one.panel = panel;
      if (!panels.includes(one)) panel.close(); // it was taken away meanwhile
      if (!panels.includes(one) || one.choice.value !== name) return; // or another series was chosen
      const guide = panels.find((each) => each !== one && each.frame.dataset.state === "ready");
      await panel.setSeries(volume);
      one.volume = volume;
      panel.setPlane(state.plane);
      panel.setCrosshair(state.crosshair);
      if (guide && state.linked) {
        panel.world = guide.panel.world;
        panel.zoom = guide.panel.zoom;
      } else if (!one.placed) {
        begin(one);
      }
      one.placed = true;
      for (const [kind, mask] of Object.entries(masks)) if (mask) panel.setMask(kind, mask);
      panel.set({ inverted: state.inverted, filling: state.filling, outlined: state.outlined, brain: state.brain, hidden: state.hidden });
      presets(one, name);
      const [low, high] = windows.get(name) ?? [volume.low, volume.high];
      setWindow(one, low, high);
      panel.drawNow();
      one.about.textContent = volume.note;
      one.frame.dataset.state = "ready";
      say(one, "");
      tell(one);
    } catch (error) {
      one.frame.dataset.state = "failed";
      say(one, `${name} can't be shown. ${error.message}`);
    }
  }

  function say(one, text) {
    one.status.textContent = text;
    one.status.hidden = !text;
  }

  // The slice that the models saw, where there is one in this plane.
  function begin(one) {
    const slice = data.slices.find((each) => each.plane === state.plane);
    if (slice) place(one, slice);
  }

  function place(one, slice) {
    const world = one.panel.world;
    world[{ sagittal: 0, coronal: 1, axial: 2 }[slice.plane]] = slice.mm;
    one.panel.world = world;
  }

  // -- moving ----------------------------------------------------------------------------------------------------------------

  function move(one, change) {
    if (!one.panel?.volume) return;
    change();
    if (state.linked) {
      for (const other of panels) {
        if (other !== one && other.panel?.volume) {
          other.panel.world = one.panel.world;
          other.panel.zoom = one.panel.zoom;
          tell(other);
        }
      }
    }
    tell(one);
  }

  function tell(one) {
    const { panel } = one;
    const several = state.plane === "multiplanar";
    const [x, y, z] = panel.world;
    const side = (value, plus, minus) => `${Math.abs(value).toFixed(0)} mm ${value >= 0 ? plus : minus}`;
    one.slider.max = panel.slices;
    one.slider.value = panel.slice + 1;
    const mm = panel.world[panel.normal];
    const slice = `${several ? "Axial slice" : "Slice"} ${panel.slice + 1} of ${panel.slices}`;
    one.slider.setAttribute("aria-valuetext", `${slice}, ${mm.toFixed(1)} mm`);
    const label = panel.labelAt();
    const named = label ? `, ${data.labels[label] ?? `label ${label}`}` : "";
    const value = panel.value;
    one.where.textContent = `${slice}, at ${mm.toFixed(1)} mm. Cross-hair: ${value === null ? "" : `value ${number(value)}${named}, `}${side(x, "R", "L")}, ${side(y, "A", "P")}, ${side(z, "S", "I")}`;
    one.canvas.setAttribute("aria-label", `${one.choice.value}, ${several ? "three planes" : `${state.plane} plane`}. ${slice}. Arrow keys up and down change the slice.`);
    one.frame.dataset.slice = panel.slice + 1;
  }

  function number(value) {
    return Math.abs(value) >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3);
  }

  // -- window ----------------------------------------------------------------------------------------------------------------

  function presets(one, name) {
    const { volume } = one;
    const found = [["auto", "Automatic", [volume.low, volume.high]], ["full", "All values", [volume.least, volume.most]]];
    for (const slice of data.slices) {
      if (slice.window && slice.series === name && !found.some(([, , window]) => window.join() === slice.window.join())) {
        found.push([`seen-${found.length}`, `As the models saw it (${slice.view})`, slice.window]);
      }
    }
    one.presets = new Map(found.map(([key, , window]) => [key, window]));
    one.preset.replaceChildren(...found.map(([key, label]) => new Option(label, key)), new Option("Your own", "own"));
  }

  function usePreset(one, key) {
    const window = one.presets.get(key);
    if (window) setWindow(one, ...window);
  }

  function setWindow(one, low, high) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return;
    const most = high > low ? high : low + Math.max(1e-6, Math.abs(low) * 1e-6);
    one.low.value = number(low);
    one.high.value = number(most);
    windows.set(one.choice.value, [low, most]);
    one.panel.set({ low, high: most });
    const same = [...one.presets].find(([, window]) => window[0] === low && window[1] === most);
    one.preset.value = same ? same[0] : "own";
  }

  // Sideways is contrast, up and down is brightness, as on a workstation.
  function dragWindow(one, start, across, down) {
    const width = start.high - start.low;
    const scale = width / 250;
    const centre = (start.low + start.high) / 2 + down * scale;
    const half = Math.max(width / 500, width / 2 + (across * scale) / 2);
    setWindow(one, centre - half, centre + half);
  }

  // -- pointer, wheel and keys -----------------------------------------------------------------------------------------------

  function pointing(one) {
    const { canvas } = one;
    let drag = null;
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      if (!one.panel?.volume) return;
      canvas.focus({ preventScroll: true });
      const kind = event.button === 2 ? "window" : event.button === 1 || event.shiftKey ? "pan" : state.drag;
      const under = one.panel.under(event, true);
      const { low, high } = one.panel.shown;
      drag = { kind, x: event.clientX, y: event.clientY, window: { low, high }, under, zoom: one.panel.zoom };
      if (event.button === 1) event.preventDefault();
      canvas.setPointerCapture(event.pointerId);
      if (kind === "point") point(one, event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return;
      if (drag.kind === "point") point(one, event);
      if (drag.kind === "window") dragWindow(one, drag.window, event.clientX - drag.x, event.clientY - drag.y);
      if (drag.kind === "pan" && drag.under) {
        // Both places are taken as they were laid out when the drag began.
        const now = one.panel.zoom;
        one.panel.nv.scene.pan2Dxyzmm = new Float32Array(drag.zoom);
        one.panel.drawNow();
        const to = one.panel.under(event, true);
        one.panel.nv.scene.pan2Dxyzmm = new Float32Array(now);
        if (to && to.plane === drag.under.plane) move(one, () => one.panel.pan(drag.under.place, to.place, drag.zoom));
      }
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (drag = null));
    canvas.addEventListener("dblclick", () => move(one, () => (one.panel.zoom = [0, 0, 0, 1])));
    let left = 0;
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!one.panel?.volume) return;
        event.preventDefault();
        if (event.ctrlKey || event.metaKey) {
          const under = one.panel.under(event);
          move(one, () => one.panel.zoomBy(Math.exp(-event.deltaY / 400), under?.place ?? one.panel.place));
          return;
        }
        left += event.deltaMode === 0 ? event.deltaY / 60 : event.deltaY; // a notch is a slice; a touch pad's small steps add up
        const steps = Math.trunc(left);
        left -= steps;
        if (steps) scroll(one, steps > 0 ? -1 * Math.min(3, steps) : Math.min(3, -steps), event);
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowUp: 1, ArrowDown: -1, PageUp: FAR, PageDown: -FAR }[event.key];
      if (steps !== undefined) scroll(one, steps);
      else if (event.key === "+" || event.key === "=") move(one, () => one.panel.zoomBy(1.25, one.panel.place));
      else if (event.key === "-") move(one, () => one.panel.zoomBy(0.8, one.panel.place));
      else if (event.key === "0") move(one, () => (one.panel.zoom = [0, 0, 0, 1]));
      else if (event.key === "i") setInverted(!state.inverted);
      else return;
      event.preventDefault();
    });
  }

  function point(one, event) {
    const under = one.panel.under(event);
    if (under) move(one, () => (one.panel.place = under.place));
  }

  // In three planes the wheel turns the slices of the plane that it is over.
  function scroll(one, steps, event) {
    const axis = { 0: 2, 1: 1, 2: 0 }[event ? one.panel.under(event, true)?.plane : undefined] ?? one.panel.normal;
    move(one, () => {
      const { place, volume } = one.panel;
      const count = volume.box.shape[axis];
      const slice = Math.floor(place[axis] * count + 1e-4);
      place[axis] = (Math.min(count - 1, Math.max(0, slice + steps)) + 0.5) / count;
      one.panel.place = place;
    });
  }

  // -- what all views have in common -----------------------------------------------------------------------------------------

  function each(change) {
    for (const one of panels) if (one.panel?.volume) change(one);
  }

  function setInverted(on) {
    state.inverted = on;
    find(".inverted").checked = on;
    each((one) => one.panel.set({ inverted: on }));
  }

  async function showMasks() {
    const wanted = { tumour: find(".tumour"), brain: find(".brain") };
    for (const [kind, choice] of Object.entries(wanted)) {
      if (!choice) continue;
      const mask = data.masks.find((one) => one.url === choice.value);
      const on = kind === "tumour" ? state.outlined : state.brain;
      if (!mask || !on) {
        each((one) => one.panel.set(kind === "tumour" ? { outlined: false } : { brain: false }));
        continue;
      }
      try {
        masks[kind] = await load(mask);
        each((one) => {
          one.panel.setMask(kind, masks[kind]);
          one.panel.set({ outlined: state.outlined, brain: state.brain });
          tell(one);
        });
        if (kind === "tumour" && state.legend !== mask.url) legend(masks[kind]);
        if (kind === "tumour") state.legend = mask.url;
        note("");
      } catch (error) {
        note(`The ${kind} mask can't be shown. ${error.message}`);
      }
    }
    root.dataset.masks = "ready";
  }

  function note(text) {
    find(".mask-note").textContent = text;
  }

  function legend(mask) {
    const there = new Set();
    const sum = [0, 0, 0];
    const [width, height] = mask.shape;
    let count = 0;
    for (let i = 0; i < mask.values.length; i++) {
      if (mask.values[i] === 0) continue;
      there.add(Math.round(mask.values[i]));
      sum[0] += i % width;
      sum[1] += Math.floor(i / width) % height;
      sum[2] += Math.floor(i / (width * height));
      count++;
    }
    find(".to-tumour").hidden = !count;
    state.tumour = count ? apply(mask.affine, sum.map((one) => Math.round(one / count))) : null;
    const labels = [...there].sort((a, b) => a - b);
    find(".legend").replaceChildren(...labels.map(entry));
    if (!count) find(".legend").append(Object.assign(document.createElement("li"), { textContent: "This mask holds no tumour." }));
  }

  function entry(label) {
    const item = document.createElement("li");
    const name = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: !state.hidden.has(label) });
    box.addEventListener("change", () => {
      if (box.checked) state.hidden.delete(label);
      else state.hidden.add(label);
      each((one) => one.panel.set({ hidden: state.hidden }));
    });
    const swatch = Object.assign(document.createElement("span"), { className: "swatch" });
    swatch.style.backgroundColor = `rgb(${(COLOURS[label] ?? [1, 0.4, 0.7]).map((one) => Math.round(255 * one)).join()})`;
    name.append(box, swatch, ` ${data.labels[label] ?? "label"} (${label})`);
    item.append(name);
    return item;
  }

  function wire() {
    find(".tools").addEventListener("submit", (event) => event.preventDefault());
    for (const box of all("[name=layout]")) box.addEventListener("change", () => arrange(Number(box.value)));
    for (const box of all("[name=plane]")) {
      box.addEventListener("change", () => {
        state.plane = box.value;
        each((one) => {
          one.panel.setPlane(state.plane);
          tell(one);
        });
      });
    }
    for (const box of all("[name=drag]")) box.addEventListener("change", () => (state.drag = box.value));
    const on = (selector, change) => find(selector)?.addEventListener("change", (event) => change(event.target));
    on(".linked", (box) => {
      state.linked = box.checked;
      if (box.checked && panels[0]?.panel) move(panels[0], () => {});
    });
    on(".crosshair", (box) => {
      state.crosshair = box.checked;
      each((one) => one.panel.setCrosshair(box.checked));
    });
    on(".inverted", (box) => setInverted(box.checked));
    on(".tumour-on", (box) => {
      state.outlined = box.checked;
      showMasks();
    });
    on(".brain-on", (box) => {
      state.brain = box.checked;
      showMasks();
    });
    on(".tumour", showMasks);
    on(".brain", showMasks);
    find(".filling")?.addEventListener("input", (event) => {
      state.filling = Number(event.target.value) / 100;
      each((one) => one.panel.set({ filling: state.filling }));
    });
    find(".to-tumour")?.addEventListener("click", () => {
      const one = panels.find((each) => each.panel?.volume);
      if (one && state.tumour) move(one, () => (one.panel.world = state.tumour));
    });
    for (const button of all(".to-slice")) {
      button.addEventListener("click", () => {
        const slice = data.slices[Number(button.dataset.slice)];
        const box = find(`[name=plane][value=${slice.plane}]`);
        if (state.plane !== "multiplanar" && !box.checked) {
          box.checked = true;
          box.dispatchEvent(new Event("change"));
        }
        const one = panels.find((each) => each.panel?.volume);
        if (one) move(one, () => place(one, slice));
      });
    }
  }
}
