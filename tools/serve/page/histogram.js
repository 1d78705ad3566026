// The numbers in view as bars in their colours. Dragging over them chooses the range of the colours; its two ends are
// handles that keys move, too.

import { colours, css, Scale } from './colour.js';
import { el, onResize, sharpen, theme } from './dom.js';

const bins = 96;
const height = 76;

export class Histogram {
  /** change(low, high): the range that was chosen. */
  constructor(element, change) {
    this.change = change;
    this.canvas = el('canvas', { role: 'img', 'aria-label': 'Histogram of the numbers in view. Drag to choose the range of the colours.' });
    this.ends = [this.handle('Low end of the colours', 0), this.handle('High end of the colours', 1)];
    this.scale = el('div', { class: 'scale', 'aria-hidden': 'true' }, el('span'), el('span'));
    element.append(this.canvas, ...this.ends, this.scale);
    this.element = element;
    this.canvas.addEventListener('pointerdown', (event) => this.brush(event));
    onResize(element, () => this.draw());
  }

  handle(label, which) {
    const button = el('button', { type: 'button', class: 'handle', role: 'slider', 'aria-label': label, 'aria-valuenow': 0 });
    button.addEventListener('pointerdown', (event) => this.drag(event, which));
    button.addEventListener('keydown', (event) => {
      const step = (event.shiftKey ? 0.1 : 0.01) * (this.domain[1] - this.domain[0]);
      const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!sign || !this.range) return;
      event.preventDefault();
      this.move(which, this.range[which] + sign * step);
    });
    return button;
  }

  /** `sources`: what is drawn; `missing`: numbers that are not counted. */
  show(sources, quantity, view) {
    const { missing } = quantity;
    this.quantity = quantity;
    let low = Infinity;
    let high = -Infinity;
    let total = 0;
    for (const { values } of sources) total += values.length;
    const step = Math.max(1, Math.floor(total / 300000));
    const use = (action) => {
      for (const { values } of sources) {
        for (let i = 0; i < values.length; i += step) {
          if (Number.isFinite(values[i]) && !missing.includes(values[i])) action(values[i]);
        }
      }
    };
    use((v) => {
      if (v < low) low = v;
      if (v > high) high = v;
    });
    this.counts = new Array(bins).fill(0);
    this.empty = low > high;
    if (this.empty) [low, high] = view.range ?? [0, 1];
    this.extent = [low, high];
    this.view = view;
    this.domain = this.widened();
    const factor = bins / (this.domain[1] - this.domain[0]);
    if (!this.empty) use((v) => ++this.counts[Math.max(0, Math.min(bins - 1, Math.floor((v - this.domain[0]) * factor)))]);
    this.draw();
  }

  /** The numbers' extent, and the range where that is wider. */
  widened() {
    let [low, high] = this.extent;
    if (this.view.range) {
      low = Math.min(low, this.view.range[0]);
      high = Math.max(high, this.view.range[1]);
    }
    if (!(high > low)) {
      const room = Math.abs(low) * 0.05 || 0.5;
      low -= room;
      high += room;
    }
    return [low, high];
  }

  get range() {
    return this.view?.range;
  }

  place(v) {
    return ((v - this.domain[0]) / (this.domain[1] - this.domain[0])) * this.width;
  }

  number(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return this.domain[0] + (Math.max(0, Math.min(this.width, x)) / this.width) * (this.domain[1] - this.domain[0]);
  }

  follow(event, moved) {
    const target = event.currentTarget;
    event.preventDefault();
    target.setPointerCapture(event.pointerId);
    const move = (next) => moved(this.number(next));
    const end = () => {
      target.removeEventListener('pointermove', move);
      target.removeEventListener('pointerup', end);
      target.removeEventListener('pointercancel', end);
    };
    target.addEventListener('pointermove', move);
    target.addEventListener('pointerup', end);
    target.addEventListener('pointercancel', end);
  }

  brush(event) {
    if (!this.domain) return;
    const start = this.number(event);
    this.follow(event, (v) => {
      if (Math.abs(this.place(v) - this.place(start)) > 3) this.change(Math.min(v, start), Math.max(v, start));
    });
  }

  drag(event, which) {
    event.currentTarget.focus();
    this.follow(event, (v) => this.move(which, v));
  }

  move(which, v) {
    const range = [...this.range];
    range[which] = v;
    if (range[0] > range[1]) range[1 - which] = v;
    this.change(range[0], range[1]);
  }

  draw() {
    this.element.hidden = !this.domain || !this.range;  // only missing numbers are in view
    if (this.element.hidden) return;
    this.width = this.element.clientWidth;
    if (this.width < 20) return;
    const context = sharpen(this.canvas, this.width, height);
    const most = Math.max(1, ...this.counts.map(Math.sqrt));
    const table = colours(this.view.map);
    const scale = new Scale(this.view.scale, this.range);
    const wide = this.width / bins;
    for (let k = 0; k < bins; ++k) {
      const middle = this.domain[0] + ((k + 0.5) / bins) * (this.domain[1] - this.domain[0]);
      const at = scale.place(middle);
      context.fillStyle = css(table[Math.max(0, Math.min(255, Math.floor(at * 256)))]);
      context.globalAlpha = at < 0 || at > 1 ? 0.35 : 1;
      const tall = this.counts[k] === 0 ? 0 : Math.max(1, (Math.sqrt(this.counts[k]) / most) * (height - 14));
      context.fillRect(k * wide, height - 8 - tall, Math.ceil(wide), tall);
      context.globalAlpha = 1;
      context.fillRect(k * wide, height - 6, Math.ceil(wide), 6);
    }
    context.strokeStyle = theme('line');
    context.strokeRect(0.5, height - 6.5, this.width - 1, 6);
    this.range.forEach((v, which) => {
      const end = this.ends[which];
      end.style.left = `${Math.max(0, Math.min(this.width, this.place(v)))}px`;
      end.setAttribute('aria-valuenow', v);
      end.setAttribute('aria-valuemin', this.domain[0]);
      end.setAttribute('aria-valuemax', this.domain[1]);
      end.setAttribute('aria-valuetext', this.quantity.full(v, this.domain[1] - this.domain[0]));
    });
    const [first, last] = this.scale.children;
    const span = this.domain[1] - this.domain[0];
    first.textContent = this.quantity.text(this.domain[0], span);
    last.textContent = this.quantity.text(this.domain[1], span);
  }
}
