// A series' voxels in the browser: fetched once, unpacked, scaled.

import { upright } from "./geometry.js";

const KINDS = {
  "|u1": Uint8Array, "|i1": Int8Array, "<u2": Uint16Array, "<i2": Int16Array, "<u4": Uint32Array, "<i4": Int32Array,
  "<f4": Float32Array, "<f8": Float64Array,
};
const SAMPLES = 200000;
const KEPT = 8; // volumes; one of 240 x 240 x 155 voxels takes 36 MB

const loading = new Map();

// A promise of { values, shape, affine, box, note, low, high }: values as Float32Array in the file's order, in the unit of the
// series; box its place in the world (geometry.js); low and high the window that shows it well.
export function load(source) {
  if (!loading.has(source.url)) {
    const volume = read(source);
    volume.catch(() => loading.delete(source.url));
    loading.set(source.url, volume);
    for (const url of loading.keys()) {
      if (loading.size <= KEPT) break;
      if (url !== source.url) loading.delete(url);
    }
  }
  return loading.get(source.url);
}

async function read(source) {
  const [facts, bytes] = await Promise.all([fetchFacts(source.facts), fetchBytes(source.url)]);
  const { shape, affine, dtype, offset, slope, intercept, note } = facts;
  const Kind = KINDS[dtype];
  const count = shape[0] * shape[1] * shape[2];
  const end = offset + count * Kind.BYTES_PER_ELEMENT;
  if (bytes.byteLength < end) throw new Error("The file ends early.");
  const aligned = offset % Kind.BYTES_PER_ELEMENT === 0;
  const stored = aligned ? new Kind(bytes, offset, count) : new Kind(bytes.slice(offset, end));
  const values = new Float32Array(stored);
  if (slope !== 1 || intercept !== 0) for (let i = 0; i < count; i++) values[i] = values[i] * slope + intercept;
  let strange = 0;
  if (dtype.startsWith("<f")) {
    for (let i = 0; i < count; i++) {
      if (Number.isFinite(values[i])) continue;
      values[i] = 0;
      strange++;
    }
  }
  const said = strange ? `${note}; ${strange} voxels hold no number and are shown as 0` : note;
  return { values, shape, affine, note: said, box: upright(affine, shape), ...range(values) };
}

// What can't be read is said in the server's own words: they name the file and the reason.
export async function fetchFacts(url) {
  const answer = await fetch(url);
  const facts = await answer.json().catch(() => ({ problem: `The server answered ${answer.status}.` }));
  if (!answer.ok || facts.problem) throw new Error(facts.problem);
  return facts;
}

export async function fetchBytes(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  const bytes = await answer.arrayBuffer();
  const [one, two] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if (one !== 0x1f || two !== 0x8b) return bytes;
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

// From 0, or the 0.5th percentile where there are values below it, to the 99.5th percentile of what is not 0.
function range(values) {
  const step = Math.max(1, Math.floor(values.length / SAMPLES)) | 1; // odd, so that it walks through all columns
  const seen = [];
  for (let i = 0; i < values.length; i += step) if (values[i] !== 0) seen.push(values[i]);
  if (!seen.length) return { low: 0, high: 1, least: 0, most: 1 };
  const sorted = Float32Array.from(seen).sort();
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const low = sorted[0] >= 0 ? 0 : at(0.005);
  const high = at(0.995);
  return { low, high: high > low ? high : low + 1, least: Math.min(0, sorted[0]), most: sorted[sorted.length - 1] };
}
