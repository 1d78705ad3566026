// What the numbers of an array mean: packed ones are decoded, and times are shown as dates.

import { digitsOf, numberText } from './colour.js';
import { unitText } from './axes.js';
import { dateDays, dateText } from './calendar.js';

const milliseconds = { W: 7 * 864e5, D: 864e5, h: 36e5, m: 6e4, s: 1e3, ms: 1, us: 1e-3, ns: 1e-6, ps: 1e-9, fs: 1e-12, as: 1e-15 };

/** {calendar, start, unit} in days for numbers that stand for moments: NumPy's, or those of the CF conventions; else null. */
function momentsOf(info) {
  if (info.time) return info.time;
  const found = /^[<>|=]?M8\[(\d*)(W|D|h|m|s|ms|us|ns|ps|fs|as)\]$/.exec(info.dtype) ?? null;
  return found && { calendar: 'proleptic_gregorian', start: 0, unit: ((Number(found[1]) || 1) * milliseconds[found[2]]) / 864e5 };
}

export class Quantity {
  constructor(info) {
    this.units = unitText(info.units);
    this.packing = info.packing ?? null;
    this.missing = this.packing ? [] : info.missing;  // decoded, they are NaN
    this.raw = info.missing;
    this.moments = momentsOf(info);
  }

  /** The numbers of a tile, decoded; the same ones where nothing is packed. */
  decode(values) {
    const { packing } = this;
    if (!packing) return values;
    const decoded = values.BYTES_PER_ELEMENT > 2 ? new Float64Array(values.length) : new Float32Array(values.length);
    for (let i = 0; i < values.length; ++i) decoded[i] = this.decoded(values[i]);
    return decoded;
  }

  decoded(v) {
    const { packing } = this;
    if (!packing || v === null) return v;
    return v === v && !this.raw.includes(v) ? v * packing.scale + packing.offset : NaN;
  }

  /** A number as text, among others that lie within `span`. */
  text(v, span = 0) {
    if (!this.moments) return numberText(v, span);
    if (v === null || v === undefined || !Number.isFinite(v)) return '–';
    const days = this.moments.start + v * this.moments.unit;
    if (Math.abs(days) > 1e8) return numberText(v, span);  // 270,000 years, as far as doubles count milliseconds
    const text = dateText(this.moments.calendar, days);
    return span * this.moments.unit >= 10 ? text.split('T')[0] : text;
  }

  /** With its units. */
  full(v, span = 0) {
    return this.units && !this.moments ? `${this.text(v, span)} ${this.units}` : this.text(v, span);
  }

  /** What a range box shows, and back: a date, or a number with all the digits that tell it apart. */
  typed(v, span) {
    if (this.moments) return this.text(v, span);
    return String(Number(v.toPrecision(digitsOf(v, span))));
  }

  parse(text) {
    if (this.moments && /^[+-]?\d{4,}-/.test(text.trim())) return (dateDays(this.moments.calendar, text) - this.moments.start) / this.moments.unit;
    return text.trim() === '' ? NaN : Number(text.replace('−', '-'));
  }

  /** An element as the server writes it, null where it is missing, as it is meant: without its units. */
  plain(text) {
    if (text === null) return 'missing';
    const code = Number(text);
    if (text === '' || !Number.isFinite(code)) return text;
    if (this.moments) return this.text(this.decoded(code));
    if (!this.packing) return text;
    const decimals = Math.max(0, Math.min(12, Math.ceil(-Math.log10(Math.abs(this.packing.scale)) - 1e-9)));
    return this.decoded(code).toFixed(decimals);
  }

  /** The same with its units; and the element as it is stored, where that is something else. */
  element(text, missing = false) {
    const plain = this.plain(missing ? null : text);
    const shown = this.units && !this.moments && !missing ? `${plain} ${this.units}` : plain;
    return { text: shown, raw: plain === text ? '' : `stored as ${text}` };
  }
}
