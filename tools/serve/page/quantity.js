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
    const valid = v === v && !this.raw.includes(v) && (packing.valid_min === null || v >= packing.valid_min) && (packing.valid_max === null || v <= packing.valid_max);
    return valid ? v * packing.scale + packing.offset : NaN;
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

  /** An element as the server writes it, decoded and with its units; and as it is stored, where that is something else. */
  element(text) {
    const raw = Number(text);
    if (this.packing && text !== '' && Number.isFinite(raw)) {
      const value = this.decoded(raw);
      if (this.moments) return { text: Number.isNaN(value) ? 'missing' : this.text(value), raw: `stored as ${text}` };
      const decimals = Math.max(0, Math.min(12, Math.ceil(-Math.log10(Math.abs(this.packing.scale)) - 1e-9)));
      const shown = Number.isNaN(value) ? 'missing' : value.toFixed(decimals) + (this.units ? ` ${this.units}` : '');
      return { text: shown, raw: `stored as ${text}` };
    }
    if (this.moments && text !== '' && Number.isFinite(raw)) return { text: this.text(raw), raw: `stored as ${text}` };
    return { text: this.units && !this.moments ? `${text} ${this.units}` : text, raw: '' };
  }
}
