// One view of a volume. NiiVue lays out the planes and draws cross-hair and orientation marks; the voxels are drawn by a shader
// of our own, which takes the window at full precision and costs nothing to change. NiiVue's own textures hold 256 grey levels
// and are made anew, with gradients for 3-D rendering, at every change of the window: seconds without a graphics card.
// So NiiVue is only given the volume's box: 2 x 2 x 2 voxels that fill the same place in the world.

import { apply, flat, gridToWorld, invert, multiply } from "./geometry.js";

const { Niivue, NVImage } = globalThis.niivue;

export const PLANES = { axial: 0, coronal: 1, sagittal: 2, multiplanar: 3 };
const NORMAL = { axial: 2, coronal: 1, sagittal: 0, multiplanar: 2 };

// Units that NiiVue uses for nothing that we use it for (11 to 13 are those of its paint bucket).
const UNITS = { series: 11, tumour: 12, brain: 13 };

// Okabe and Ito's colours, told apart by people who are colour-blind: necrotic core, oedema, enhancing tumour.
export const COLOURS = { 1: [0.835, 0.369, 0], 2: [0.337, 0.706, 0.914], 3: [0.941, 0.894, 0.259], 4: [0.941, 0.894, 0.259] };
const BRAIN = [0.0, 0.75, 0.55];
const CROSSHAIR = 0.6; // mm

const SHADER = `#version 300 es
precision highp float;
precision highp int;
uniform highp sampler3D series, tumour, brain;
uniform mat4 toSeries;
uniform mat4 toTumour;
uniform mat4 toBrain;
uniform vec2 levels;
uniform float inverted;
uniform float filling;
uniform float outlined;
uniform vec4 colours[8];
uniform vec4 brainColour;
in vec3 texPos;
out vec4 color;
float at(highp sampler3D volume, mat4 place, vec3 position) {
  vec3 where = (place * vec4(position, 1.0)).xyz;
  if (any(lessThan(where, vec3(0.0))) || any(greaterThan(where, vec3(1.0)))) return 0.0;
  return texture(volume, where).r;
}
int label(vec3 position) { return int(at(tumour, toTumour, position) * 255.0 + 0.5); }
bool inside(vec3 position) { return at(brain, toBrain, position) > 0.0; }
void main() {
  vec3 across = dFdx(texPos), down = dFdy(texPos);
  float grey = clamp((at(series, toSeries, texPos) - levels.x) / (levels.y - levels.x), 0.0, 1.0);
  vec3 seen = vec3(mix(grey, 1.0 - grey, inverted));
  if (brainColour.a > 0.0) {
    bool here = inside(texPos);
    if (here != inside(texPos + across) || here != inside(texPos + down)) seen = mix(seen, brainColour.rgb, brainColour.a);
  }
  if (outlined > 0.0) {
    int here = label(texPos);
    vec4 colour = colours[min(here, 7)];
    if (here > 0) seen = mix(seen, colour.rgb, colour.a * filling);
    int beside = label(texPos + across), under = label(texPos + down);
    if (here != beside || here != under) {
      vec4 edge = colours[min(max(here, max(beside, under)), 7)];
      seen = mix(seen, edge.rgb, edge.a);
    }
  }
  color = vec4(seen, 1.0);
}`;

export class Panel {
  static async on(canvas) {
    if (!document.createElement("canvas").getContext("webgl2")) throw new Error("It needs WebGL 2, which this browser does not have.");
    const panel = new Panel();
    const nv = new Niivue({
      logLevel: "silent", loadingText: "", interactive: false, dragAndDropEnabled: false, isAntiAlias: false,
      isRadiologicalConvention: true, sagittalNoseLeft: true, isOrientationTextVisible: true, showAllOrientationMarkers: true,
      multiplanarShowRender: 0, multiplanarForceRender: false, multiplanarPadPixels: 4, backColor: [0, 0, 0, 1],
      fontColor: [1, 0.85, 0.4, 1], fontMinPx: 13, crosshairColor: [0.3, 0.85, 1, 0.75], crosshairWidthUnit: "mm", crosshairGap: 8,
    });
    nv.meshShaders = []; // there are no surfaces here, and each of these programs takes time to compile
    // NiiVue draws at every call; here all that changes within a frame is drawn once.
    panel.drawScene = nv.drawScene.bind(nv);
    nv.drawScene = () => panel.draw();
    panel.nv = nv;
    panel.canvas = canvas;
    await nv.attachToCanvas(canvas, false);
    nv.setCustomSliceShader(SHADER);
    panel.smooth = nv.gl.getExtension("OES_texture_float_linear") !== null;
    panel.shown = { low: 0, high: 1, inverted: false, filling: 0.4, outlined: true, hidden: new Set(), brain: false };
    for (const name of Object.keys(UNITS)) panel.#empty(name);
    return panel;
  }

  #textures = {};
  #due = false;

  // -- what is shown ---------------------------------------------------------------------------------------------------------

  async setSeries(volume) {
    const keep = this.volume ? this.world : null;
    this.volume = volume;
    const old = this.nv.volumes[0];
    const box = await NVImage.loadFromUrl({ url: boxFile(volume), name: "box.nii", colormap: "gray" });
    if (old) this.nv.removeVolume(old);
    this.nv.addVolume(box);
    this.nv.setCrosshairWidth(this.crosshair ?? CROSSHAIR);
    this.#upload("series", volume, volume.values, this.nv.gl.R32F, this.nv.gl.FLOAT, this.smooth);
    this.#place("series", volume);
    for (const name of ["tumour", "brain"]) if (this[name]) this.#place(name, this[name]);
    this.world = keep ?? apply(volume.box.toWorld, [0.5, 0.5, 0.5]);
  }

  setMask(name, volume) {
    this[name] = volume;
    const { gl } = this.nv;
    const labels = new Uint8Array(volume.values.length);
    for (let i = 0; i < labels.length; i++) labels[i] = volume.values[i] + 0.5;
    this.#upload(name, volume, labels, gl.R8, gl.UNSIGNED_BYTE, false);
    this.#place(name, volume);
    this.draw();
  }

  dropMask(name) {
    this[name] = null;
    this.#empty(name);
    this.draw();
  }

  setPlane(plane) {
    this.plane = plane;
    this.nv.setSliceType(PLANES[plane]);
    this.draw();
  }

  setCrosshair(on) {
    this.crosshair = on ? CROSSHAIR : 0;
    this.nv.setCrosshairWidth(this.crosshair);
    this.draw();
  }

  set(shown) {
    Object.assign(this.shown, shown);
    this.draw();
  }

  // -- where it is -----------------------------------------------------------------------------------------------------------

  // The cross-hair, in RAS+ millimetres.
  get world() {
    return apply(this.volume.box.toWorld, this.nv.scene.crosshairPos);
  }

  set world(point) {
    this.place = apply(invert(this.volume.box.toWorld), point);
  }

  get place() {
    return [...this.nv.scene.crosshairPos];
  }

  set place(place) {
    this.nv.scene.crosshairPos = new Float32Array(place.map((value) => Math.min(1, Math.max(0, value))));
    this.draw();
  }

  get normal() {
    return NORMAL[this.plane];
  }

  get slices() {
    return this.volume.box.shape[this.normal];
  }

  // The slice's number from the right, the back or the feet, from 0.
  get slice() {
    return Math.min(this.slices - 1, Math.floor(this.nv.scene.crosshairPos[this.normal] * this.slices + 1e-4));
  }

  set slice(number) {
    const place = this.place;
    place[this.normal] = (Math.min(this.slices - 1, Math.max(0, number)) + 0.5) / this.slices;
    this.place = place;
  }

  // The value at the cross-hair, of the voxel that holds it; null outside.
  get value() {
    return valueAt(this.volume, multiply(this.volume.box.turn, columns(this.nv.scene.crosshairPos)));
  }

  labelAt() {
    if (!this.tumour) return null;
    return valueAt(this.tumour, multiply(invert(gridToWorld(this.tumour.affine, this.tumour.shape)), columns(this.world)));
  }

  // -- pointing --------------------------------------------------------------------------------------------------------------

  // The place under a pointer, 0 to 1 along each axis of the box, and beyond it only if `anywhere`; null where no plane is drawn.
  under(event, anywhere = false) {
    const frame = this.canvas.getBoundingClientRect();
    const x = ((event.clientX - frame.left) * this.canvas.width) / frame.width;
    const y = ((event.clientY - frame.top) * this.canvas.height) / frame.height;
    const tile = this.nv.tileIndex(x, y);
    if (tile < 0) return null;
    const place = [...this.nv.screenXY2TextureFrac(x, y, tile, false)];
    const out = place.some((value) => value < 0 || value > 1);
    return out && !anywhere ? null : { place, plane: this.nv.screenSlices[tile].axCorSag };
  }

  get zoom() {
    return [...this.nv.scene.pan2Dxyzmm];
  }

  set zoom(panAndZoom) {
    this.nv.scene.pan2Dxyzmm = new Float32Array(panAndZoom);
    this.draw();
  }

  // Larger or smaller around a place, which stays where it is.
  zoomBy(factor, place) {
    const [x, y, z, old] = this.zoom;
    const now = Math.min(16, Math.max(1, old * factor));
    const mm = this.nv.frac2mm(place);
    this.zoom = now === 1 ? [0, 0, 0, 1] : [x, y, z].map((pan, k) => pan - (now - old) * mm[k]).concat(now);
  }

  pan(from, to, start) {
    const one = this.nv.frac2mm(from);
    const two = this.nv.frac2mm(to);
    this.zoom = [0, 1, 2].map((k) => start[k] + start[3] * (two[k] - one[k])).concat(start[3]);
  }

  // -- drawing ---------------------------------------------------------------------------------------------------------------

  draw() {
    if (this.#due || !this.volume) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.drawNow();
    });
  }

  drawNow() {
    const { gl } = this.nv;
    const shader = this.nv.customSliceShader;
    const { low, high, inverted, filling, outlined, hidden, brain } = this.shown;
    gl.useProgram(shader.program);
    const place = (name) => gl.getUniformLocation(shader.program, name);
    for (const [name, unit] of Object.entries(UNITS)) gl.uniform1i(place(name), unit);
    gl.uniform2f(place("levels"), low, high);
    gl.uniform1f(place("inverted"), inverted ? 1 : 0);
    gl.uniform1f(place("filling"), filling);
    gl.uniform1f(place("outlined"), outlined && this.tumour ? 1 : 0);
    const colours = Array.from({ length: 8 }, (_, label) => [...(COLOURS[label] ?? [1, 0.4, 0.7]), label === 0 || hidden.has(label) ? 0 : 1]);
    gl.uniform4fv(place("colours"), new Float32Array(colours.flat()));
    gl.uniform4fv(place("brainColour"), new Float32Array([...BRAIN, brain && this.brain ? 1 : 0]));
    this.drawScene();
  }

  // Gives the graphics memory back: a browser has few contexts, and takes the oldest for a new one.
  close() {
    this.nv.cleanup();
    this.nv.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  // Waits until everything is drawn.
  finish() {
    const { gl } = this.nv;
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  }

  #upload(name, volume, values, kind, type, smooth) {
    const { gl } = this.nv;
    const most = gl.getParameter(gl.MAX_3D_TEXTURE_SIZE);
    if (Math.max(...volume.shape) > most) throw new Error(`This machine's graphics show volumes of at most ${most} voxels a side.`);
    gl.deleteTexture(this.#textures[name]);
    this.#textures[name] = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + UNITS[name]);
    gl.bindTexture(gl.TEXTURE_3D, this.#textures[name]);
    const filter = smooth ? gl.LINEAR : gl.NEAREST;
    gl.texParameteri(gl.TEXTURE_3D, gl.TEXTURE_MIN_FILTER, filter);
    gl.texParameteri(gl.TEXTURE_3D, gl.TEXTURE_MAG_FILTER, filter);
    for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T, gl.TEXTURE_WRAP_R]) gl.texParameteri(gl.TEXTURE_3D, side, gl.CLAMP_TO_EDGE);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texImage3D(gl.TEXTURE_3D, 0, kind, ...volume.shape, 0, gl.RED, type, values);
    gl.activeTexture(gl.TEXTURE0);
  }

  #empty(name) {
    const { gl } = this.nv;
    const kind = name === "series" ? [gl.R32F, gl.FLOAT] : [gl.R8, gl.UNSIGNED_BYTE];
    this.#upload(name, { shape: [1, 1, 1] }, name === "series" ? new Float32Array(1) : new Uint8Array(1), ...kind, false);
  }

  // How a place in the series' box lies in the array of a volume, which may have another grid.
  #place(name, volume) {
    const { gl } = this.nv;
    const shader = this.nv.customSliceShader;
    const matrix = multiply(invert(gridToWorld(volume.affine, volume.shape)), this.volume.box.toWorld);
    gl.useProgram(shader.program);
    gl.uniformMatrix4fv(gl.getUniformLocation(shader.program, `to${name[0].toUpperCase()}${name.slice(1)}`), false, flat(matrix));
  }
}

function columns(point) {
  return [[point[0]], [point[1]], [point[2]], [1]];
}

function valueAt(volume, at) {
  const index = volume.shape.map((size, axis) => Math.floor(at[axis][0] * size));
  if (index.some((one, axis) => one < 0 || one >= volume.shape[axis])) return null;
  return volume.values[index[0] + volume.shape[0] * (index[1] + volume.shape[1] * index[2])];
}

// A NIfTI-1 file of 2 x 2 x 2 voxels that fill the box of a volume.
function boxFile(volume) {
  const affine = multiply(volume.box.toWorld, [[0.5, 0, 0, 0.25], [0, 0.5, 0, 0.25], [0, 0, 0.5, 0.25], [0, 0, 0, 1]]);
  const file = new ArrayBuffer(352 + 8);
  const view = new DataView(file);
  view.setInt32(0, 348, true);
  [3, 2, 2, 2, 1, 1, 1, 1].forEach((size, k) => view.setInt16(40 + 2 * k, size, true));
  view.setInt16(70, 2, true); // voxels of 8 bits
  view.setInt16(72, 8, true);
  const sizes = [0, 1, 2].map((axis) => Math.hypot(affine[0][axis], affine[1][axis], affine[2][axis]));
  [1, ...sizes, 1, 1, 1, 1].forEach((size, k) => view.setFloat32(76 + 4 * k, size, true));
  view.setFloat32(108, 352, true);
  view.setFloat32(112, 1, true);
  view.setUint8(123, 2); // millimetres
  view.setInt16(254, 1, true);
  affine.slice(0, 3).forEach((row, r) => row.forEach((value, c) => view.setFloat32(280 + 16 * r + 4 * c, value, true)));
  [0x6e, 0x2b, 0x31].forEach((byte, k) => view.setUint8(344 + k, byte));
  new Uint8Array(file, 352).set([0, 1, 2, 3, 4, 5, 6, 7]);
  return file;
}
