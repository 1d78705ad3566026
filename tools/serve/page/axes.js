// What stands along the axes of a picture: coordinates where the group has them, else indices; and round numbers
// between two others.

import { numberText } from './colour.js';

const unitTexts = { degrees_north: '°N', degrees_east: '°E', degree_north: '°N', degree_east: '°E', micrometer: 'µm', micrometre: 'µm',
                    nanometer: 'nm', millimeter: 'mm', meter: 'm', second: 's' };

export const unitText = (units) => unitTexts[units] ?? units ?? '';

/** Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, at most `most` of them. */
export function roundTicks(low, high, most, whole = false) {
  const span = (high - low) / Math.max(1, most);
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const power = 10 ** Math.floor(Math.log10(span));
  for (const factor of [1, 2, 5, 10, 20]) {
    const step = whole ? Math.max(1, Math.round(factor * power)) : factor * power;
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    if (last - first + 1 > most) continue;
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => (first + k) * step);
  }
  return [low];
}

/** A dimension of an array. Positions along it are edges: element i reaches from i to i + 1. */
export class Dimension {
  /** `given`: {label, units, values, texts, every} of the server, or null where there are no coordinates. */
  constructor(name, length, given) {
    this.name = name;
    this.length = length;
    this.label = given?.label || name;
    this.units = unitText(given?.units);
    this.values = given?.values ?? null;
    this.texts = given?.texts ?? null;
    this.every = given?.every ?? 1;
    this.numbers = this.values !== null && this.values.length > 1 && this.rising() !== 0;
  }

  /** 1 where values rise throughout, -1 where they fall, 0 else. */
  rising() {
    const { values } = this;
    const sign = Math.sign(values[1] - values[0]);
    for (let k = 0; k + 1 < values.length; ++k) {
      if (values[k] === null || values[k + 1] === null || Math.sign(values[k + 1] - values[k]) !== sign) return 0;
    }
    return sign;
  }

  get known() {
    return this.values !== null || this.texts !== null;
  }

  title() {
    return this.units ? `${this.label} (${this.units})` : this.label;
  }

  /** The coordinate at an index, which may lie between two; beyond the ends as the line goes on. */
  value(index) {
    const { values, every } = this;
    const last = values.length - 1;
    const at = index / every;
    const k = Math.max(0, Math.min(last - 1, Math.floor(at)));
    return values[k] + (values[k + 1] - values[k]) * (at - k);
  }

  /** The index, with its fraction, at which a coordinate stands. */
  index(value) {
    const { values, every } = this;
    const sign = this.rising();
    let [low, high] = [0, values.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((values[middle] - value) * sign <= 0) low = middle;
      else high = middle;
    }
    return (low + (value - values[low]) / (values[high] - values[low])) * every;
  }

  /** The coordinate of an element as text; '' without one. */
  text(index) {
    const k = Math.round(index / this.every);
    const about = k * this.every === index ? '' : '≈ ';
    if (this.texts) return about + (this.texts[Math.min(k, this.texts.length - 1)] ?? '–');
    if (!this.values) return '';
    if (!this.numbers) return about + numberText(this.values[Math.min(k, this.values.length - 1)]);
    const value = this.value(index);
    return about + (Math.abs(value) >= 1e-4 && Math.abs(value) < 1e7 ? String(Number(value.toPrecision(9))) : numberText(value));
  }

  /** The index that is nearest to what somebody typed, a coordinate or the beginning of its text; null without one. */
  find(typed) {
    const text = typed.trim();
    if (text === '') return null;
    if (this.texts) {
      const k = this.texts.findIndex((one) => one?.startsWith(text));
      if (k >= 0) return Math.min(this.length - 1, k * this.every);
      const later = this.texts.findIndex((one) => one > text);  // of times, the last one before it
      return /^-?\d/.test(text) && this.values ? Math.max(0, (later < 0 ? this.texts.length : later) - 1) * this.every : null;
    }
    const number = Number(text.replace('−', '-').replace('≈', ''));
    if (!Number.isFinite(number)) return null;
    if (!this.numbers) return this.values ? null : Math.max(0, Math.min(this.length - 1, Math.round(number)));
    return Math.max(0, Math.min(this.length - 1, Math.round(this.index(number))));
  }

  /** Marks between two edges: [{at: edge, text}]. `most`: for so many is room; `wide`: for so many of texts. */
  ticks(first, last, most, wide) {
    if (this.texts) {
      const picked = roundTicks(Math.max(0, first), Math.min(this.length - 1, last - 0.5), Math.max(1, wide), true)
        .map((i) => Math.round(i / this.every) * this.every).filter((i, k, all) => i !== all[k - 1] && i < this.length);
      const texts = picked.map((i) => this.texts[i / this.every] ?? '');
      const midnight = texts.every((text) => /T00:00(:00(\.0+)?)?$/.test(text));
      return picked.map((i, k) => ({ at: i + 0.5, text: midnight ? texts[k].split('T')[0] : texts[k] }));
    }
    if (!this.numbers) {
      return roundTicks(Math.ceil(first - 0.5), Math.floor(last - 0.5), most, true).filter((i) => i >= 0 && i < this.length)
        .map((i) => ({ at: i + 0.5, text: this.values ? this.text(i) : String(i) }));
    }
    const ends = [this.value(first - 0.5), this.value(last - 0.5)];
    const low = Math.min(...ends);
    const high = Math.max(...ends);
    const ticks = this.units.startsWith('°') ? degreeTicks(low, high, most) : roundTicks(low, high, most);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : high - low;
    return ticks.map((v) => ({ at: this.index(v) + 0.5, text: tickText(v, step) })).filter(({ at }) => at >= first && at <= last);
  }
}

/** As people divide circles. */
function degreeTicks(low, high, most) {
  for (const step of [10, 15, 30, 45, 60, 90]) {
    if (high - low < 20) break;
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    if (last - first + 1 <= most) return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
  }
  return roundTicks(low, high, most);
}

/** A number as one of several that differ by `step`. */
export function tickText(v, step) {
  if (Math.abs(v) < Math.abs(step) * 1e-9) return '0';
  const size = Math.max(Math.abs(v), Math.abs(step));
  if (size >= 1e6 || Math.abs(step) < 1e-5) {
    const digits = Math.max(0, Math.min(15, Math.floor(Math.log10(size)) - Math.floor(Math.log10(Math.abs(step)) + 1e-9)));
    return v.toExponential(digits).replace('e+', 'e').replace('-', '−');
  }
  return v.toFixed(Math.max(0, Math.min(9, -Math.floor(Math.log10(Math.abs(step)) + 1e-9)))).replace('-', '−');
}
