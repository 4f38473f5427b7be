// Owns putting screenshots together as an animated PNG: each frame holds only the box that changed. No dependency but zlib.
import { crc32 as zlibCrc, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

const table = Array.from({ length: 256 }, (_, n) => { let c = n; for (let k = 0; k < 8; k++) { c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1; } return c >>> 0; });
const crc32 = zlibCrc ?? ((data) => { let c = 0xffffffff; for (const byte of data) { c = table[(c ^ byte) & 255] ^ (c >>> 8); } return (c ^ 0xffffffff) >>> 0; });

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

/** Pixels of an 8-bit RGB or RGBA PNG without interlacing, as RGB. */
export function decode(png) {
  let [at, header, channels] = [8, null, 3];
  const data = [];
  while (at < png.length) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') { header = { width: body.readUInt32BE(0), height: body.readUInt32BE(4) }; channels = body[9] === 6 ? 4 : 3; }
    if (type === 'IDAT') { data.push(body); }
    at += length + 12;
  }
  const { width, height } = header;
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const rows = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const left = x >= channels ? rows[y * stride + x - channels] : 0;
      const up = y ? rows[(y - 1) * stride + x] : 0;
      const corner = y && x >= channels ? rows[(y - 1) * stride + x - channels] : 0;
      rows[y * stride + x] = raw[y * (stride + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
  }
  if (channels === 3) { return { width, height, rgb: rows }; }
  const rgb = Buffer.alloc(width * height * 3);
  for (let n = 0; n < width * height; n++) { rows.copy(rgb, n * 3, n * 4, n * 4 + 3); }
  return { width, height, rgb };
}

function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/** The smallest box in which two pictures differ; null when they are the same. */
function changed(a, b) {
  let [left, top, right, bottom] = [a.width, a.height, -1, -1];
  for (let y = 0; y < a.height; y++) {
    const line = y * a.width * 3;
    if (a.rgb.compare(b.rgb, line, line + a.width * 3, line, line + a.width * 3) === 0) { continue; }
    top = Math.min(top, y);
    bottom = y;
    for (let x = 0; x < a.width; x++) {
      const at = line + x * 3;
      if (a.rgb[at] !== b.rgb[at] || a.rgb[at + 1] !== b.rgb[at + 1] || a.rgb[at + 2] !== b.rgb[at + 2]) { left = Math.min(left, x); right = Math.max(right, x); }
    }
  }
  return right < 0 ? null : { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}

/** The box with each of four filters on all its lines; the smallest is taken. */
function compress({ width, rgb }, box) {
  const stride = box.width * 3;
  const tries = [0, 1, 2, 4].map((filter) => {
    const raw = Buffer.alloc((stride + 1) * box.height);
    for (let y = 0; y < box.height; y++) {
      const [from, to] = [((box.y + y) * width + box.x) * 3, y * (stride + 1)];
      raw[to] = filter;
      for (let x = 0; x < stride; x++) {
        const left = x >= 3 ? rgb[from + x - 3] : 0;
        const up = y ? rgb[from - width * 3 + x] : 0;
        const corner = y && x >= 3 ? rgb[from - width * 3 + x - 3] : 0;
        raw[to + 1 + x] = rgb[from + x] - [0, left, up, 0, paeth(left, up, corner)][filter];
      }
    }
    return deflateSync(raw, { level: 9, memLevel: 9 });
  });
  return tries.sort((one, other) => one.length - other.length)[0];
}

/** Frames as {png, ms}, all of one size. Frames that change nothing only lengthen the one before. */
export function animate(frames) {
  const pictures = [];
  for (const { png, ms } of frames) {
    const picture = decode(png);
    const last = pictures.at(-1);
    const box = last ? changed(last.picture, picture) : { x: 0, y: 0, width: picture.width, height: picture.height };
    if (box) { pictures.push({ picture, box, ms }); } else { last.ms += ms; }
  }
  const { width, height } = pictures[0].picture;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const control = Buffer.alloc(8);
  control.writeUInt32BE(pictures.length, 0);
  const parts = [SIGNATURE, chunk('IHDR', header), chunk('acTL', control)];
  let sequence = 0;
  pictures.forEach(({ picture, box, ms }, number) => {
    const frame = Buffer.alloc(26);
    [sequence++, box.width, box.height, box.x, box.y].forEach((value, at) => frame.writeUInt32BE(value, at * 4));
    frame.writeUInt16BE(Math.round(ms), 20);
    frame.writeUInt16BE(1000, 22);
    parts.push(chunk('fcTL', frame));
    const data = compress(picture, box);
    if (number === 0) { parts.push(chunk('IDAT', data)); return; }
    const prefixed = Buffer.alloc(data.length + 4);
    prefixed.writeUInt32BE(sequence++, 0);
    data.copy(prefixed, 4);
    parts.push(chunk('fdAT', prefixed));
  });
  return Buffer.concat([...parts, chunk('IEND', Buffer.alloc(0))]);
}
