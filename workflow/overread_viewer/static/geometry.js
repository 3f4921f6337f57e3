// Where a voxel lies: 4 x 4 matrices as arrays of four rows, in RAS+ world coordinates and millimetres.

export function multiply(a, b) {
  return a.map((row) => b[0].map((_, column) => row.reduce((sum, value, k) => sum + value * b[k][column], 0)));
}

export function apply(matrix, point) {
  return [0, 1, 2].map((row) => matrix[row][0] * point[0] + matrix[row][1] * point[1] + matrix[row][2] * point[2] + matrix[row][3]);
}

// Of an affine matrix, by Cramer's rule.
export function invert(m) {
  const [[a, b, c], [d, e, f], [g, h, i]] = m;
  const det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
  const rows = [
    [(e * i - f * h) / det, (c * h - b * i) / det, (b * f - c * e) / det],
    [(f * g - d * i) / det, (a * i - c * g) / det, (c * d - a * f) / det],
    [(d * h - e * g) / det, (b * g - a * h) / det, (a * e - b * d) / det],
  ];
  const back = rows.map((row) => -(row[0] * m[0][3] + row[1] * m[1][3] + row[2] * m[2][3]));
  return [...rows.map((row, k) => [...row, back[k]]), [0, 0, 0, 1]];
}

// From a place in the array's box, 0 to 1 along each axis, to the world. A voxel's centre is half a voxel inside.
export function gridToWorld(affine, shape) {
  const [x, y, z] = shape;
  return multiply(affine, [[x, 0, 0, -0.5], [0, y, 0, -0.5], [0, 0, z, -0.5], [0, 0, 0, 1]]);
}

const ORDERS = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

// The box turned so that its axes run to the patient's right, front and top: for each world axis it is the array axis
// that is nearest to it, also when the scan is oblique.
export function upright(affine, shape) {
  const cosine = (world, axis) => affine[world][axis] / Math.hypot(affine[0][axis], affine[1][axis], affine[2][axis]);
  const closeness = (order) => order.reduce((sum, axis, world) => sum + Math.abs(cosine(world, axis)), 0);
  const order = ORDERS.reduce((best, one) => (closeness(one) > closeness(best) + 1e-9 ? one : best));
  const turn = [0, 1, 2, 3].map(() => [0, 0, 0, 0]);
  turn[3][3] = 1;
  order.forEach((axis, world) => {
    const rising = cosine(world, axis) > 0;
    turn[axis][world] = rising ? 1 : -1;
    turn[axis][3] = rising ? 0 : 1;
  });
  return { turn, shape: order.map((axis) => shape[axis]), toWorld: multiply(gridToWorld(affine, shape), turn) };
}

export function flat(matrix) {
  // column after column, as WebGL wants it
  return new Float32Array([0, 1, 2, 3].flatMap((column) => matrix.map((row) => row[column])));
}
