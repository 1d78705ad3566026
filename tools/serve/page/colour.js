// Numbers to colours.

import { json } from './api.js';
import { roundTicks } from './axes.js';

let tables = null;
const reversed = {};

/** Loads the tables once: 256 colours of each map, as the program draws them. */
export async function loadColours() {
  const loaded = await json('api/colours');
  tables = {};
  for (const [name, text] of Object.entries(loaded)) {
    tables[name] = [];
    for (let i = 0; i < text.length; i += 6) tables[name].push(parseInt(text.slice(i, i + 6), 16));
  }
}

/** 256 colours of a map; with "_r" at its end, from the other end. */
export function colours(map) {
  if (!map.endsWith('_r')) return tables[map] ?? tables.viridis;
  reversed[map] ??= [...(tables[map.slice(0, -2)] ?? tables.viridis)].reverse();
  return reversed[map];
}

export const knownMap = (map) => Object.hasOwn(tables, map.replace(/_r$/, '')) && map !== 'nan';
export const mapNames = () => Object.keys(tables).filter((name) => name !== 'nan');

/** How a range of numbers is laid along the colours: 'linear', 'log', 'symlog', 'root' (gamma ½) or 'square' (gamma 2). */
export class Scale {
  constructor(name, [low, high]) {
    Object.assign(this, { name, low, high });
    if (name === 'log') {
      this.top = high > 0 ? high : 1;
      this.bottom = low > 0 ? low : this.top / 1e4;
      this.factor = this.top > this.bottom ? 1 / Math.log(this.top / this.bottom) : 0;
    }
    if (name === 'symlog') {
      this.knee = Math.max(Math.abs(low), Math.abs(high)) / 1000 || 1;
      this.from = Math.asinh(low / this.knee);
      this.factor = high > low ? 1 / (Math.asinh(high / this.knee) - this.from) : 0;
    }
  }

  /** From 0 to 1 within the range. */
  place(v) {
    if (this.name === 'log') return v > 0 ? Math.log(v / this.bottom) * this.factor : -1;
    if (this.name === 'symlog') return (Math.asinh(v / this.knee) - this.from) * this.factor;
    const at = this.high > this.low ? (v - this.low) / (this.high - this.low) : v < this.low ? 0 : v > this.low ? 1 : 0.5;
    if (this.name === 'root') return at > 0 ? Math.sqrt(at) : at;
    return this.name === 'square' ? at * Math.abs(at) : at;
  }

  ticks(most) {
    const powers = (low, high) => {
      const found = [];
      const step = Math.max(1, Math.ceil((Math.log10(high) - Math.log10(low)) / most));
      for (let k = Math.ceil(Math.log10(low) - 1e-9); k <= Math.log10(high) + 1e-9; k += step) found.push(10 ** k);
      return found;
    };
    if (this.name === 'log' && powers(this.bottom, this.top).length > 1) return powers(this.bottom, this.top);
    if (this.name === 'symlog') {
      const up = this.high > this.knee ? powers(this.knee, this.high) : [];
      const down = this.low < -this.knee ? powers(this.knee, -this.low).map((v) => -v).reverse() : [];
      return [...down, ...(this.low <= 0 && this.high >= 0 ? [0] : []), ...up].filter((v) => v >= this.low && v <= this.high);
    }
    return roundTicks(this.low, this.high, most);
  }
}

export function css(rgb) {
  return `#${rgb.toString(16).padStart(6, '0')}`;
}

export function nanColour() {
  return tables.nan[0];
}

const opaque = (rgb) => (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >>> 16)) >>> 0;

/** What turns numbers into pixels: `look` {map, scale, range}, and the numbers that stand for missing data. */
export class Painter {
  constructor({ map, scale, range }, missing) {
    this.table = Uint32Array.from(colours(map), opaque);
    this.labels = /^labels(_r)?$/.test(map);
    this.low = range[0];
    this.scale = range[1] > range[0] ? 256 / (range[1] - range[0]) : 0;
    this.curve = scale && scale !== 'linear' ? new Scale(scale, range) : null;
    this.missing = missing.filter((v) => v !== null);
  }

  pixel(v) {
    if (v !== v) return 0;  // the hatch shines through
    for (const m of this.missing) {
      if (v === m) return 0x28808080;
    }
    if (this.labels) return this.table[v === 0 ? 0 : 1 + ((Math.abs(Math.trunc(v)) - 1) % 255)];
    if (this.curve) return this.table[Math.max(0, Math.min(255, Math.floor(this.curve.place(v) * 256)))];
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
