// Numbers to colours.

import { json } from './api.js';

let tables = null;

/** Loads the tables once: 256 colours of each map, as the program draws them. */
export async function loadColours() {
  const loaded = await json('api/colours');
  tables = {};
  for (const [name, text] of Object.entries(loaded)) {
    tables[name] = [];
    for (let i = 0; i < text.length; i += 6) tables[name].push(parseInt(text.slice(i, i + 6), 16));
  }
}

export function colours(map) {
  return tables[map];
}

export function css(rgb) {
  return `#${rgb.toString(16).padStart(6, '0')}`;
}

export function nanColour() {
  return tables.nan[0];
}

const opaque = (rgb) => (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >>> 16)) >>> 0;

/** What turns numbers into pixels: a map, a range, and the numbers that stand for missing data. */
export class Painter {
  constructor(map, range, missing) {
    this.table = Uint32Array.from(tables[map], opaque);
    this.low = range[0];
    this.scale = range[1] > range[0] ? 256 / (range[1] - range[0]) : 0;
    this.missing = missing.filter((v) => v !== null);
  }

  pixel(v) {
    if (v !== v) return 0;  // the hatch shines through
    for (const m of this.missing) {
      if (v === m) return 0x28808080;
    }
    if (this.scale === 0) return this.table[v < this.low ? 0 : v > this.low ? 255 : 128];
    const k = (v - this.low) * this.scale;
    return this.table[k < 0 ? 0 : k > 255 ? 255 : k | 0];
  }

  /** A part of `data`, {first, count} along each axis, onto a canvas of the same size; flipped axes from their ends. */
  paint(canvas, data, row, column, flipped) {
    canvas.width = column.count;
    canvas.height = row.count;
    const image = new ImageData(column.count, row.count);
    const pixels = new Uint32Array(image.data.buffer);
    const high = Math.min(row.count, data.rows - row.first);
    const wide = Math.min(column.count, data.columns - column.first);
    const step = flipped[1] ? -1 : 1;
    for (let i = 0; i < high; ++i) {
      let from = (row.first + i) * data.columns + column.first;
      let to = (flipped[0] ? row.count - 1 - i : i) * column.count + (flipped[1] ? column.count - 1 : 0);
      for (let j = 0; j < wide; ++j, to += step) pixels[to] = this.pixel(data.values[from++]);
    }
    canvas.getContext('2d').putImageData(image, 0, 0);
  }
}

/** The values at some percentiles of numbers, NaN and missing ones left out; null without any. */
export function percentiles(values, missing, ...at) {
  const found = [];
  const step = Math.max(1, Math.floor(values.length / 200000));
  for (let i = 0; i < values.length; i += step) {
    const v = values[i];
    if (Number.isFinite(v) && !missing.includes(v)) found.push(v);
  }
  if (found.length === 0) return null;
  found.sort((a, b) => a - b);
  return at.map((p) => found[Math.min(found.length - 1, Math.round((p / 100) * (found.length - 1)))]);
}

/** How many digits of a number tell it from others in a range, which may be narrow and far from 0. */
export function digitsOf(v, span) {
  if (!(span > 0)) return 8;
  return Math.max(6, Math.min(17, Math.ceil(Math.log10(Math.max(Math.abs(v), span) / span)) + 4));
}

/** A number in as few digits as tell it from its neighbours in a range. */
export function numberText(v, span = 0) {
  if (v === null || v === undefined) return '–';
  if (!Number.isFinite(v)) return String(v);
  if (v === 0) return '0';
  const size = Math.max(Math.abs(v), span);
  if (size >= 1e7 || size < 1e-4) {
    const digits = span > 0 ? Math.max(3, digitsOf(v, span) - 4) : 3;
    return v.toExponential(digits).replace(/\.?0+e/, 'e').replace('e+', 'e');
  }
  const digits = span > 0 ? Math.max(0, Math.min(8, 2 - Math.floor(Math.log10(span)))) : 4;
  const text = v.toFixed(digits);
  return (text.includes('.') ? text.replace(/\.?0+$/, '') : text).replace('-', '−');
}
