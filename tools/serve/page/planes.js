// Three planes of a volume through one place: each shows where the other two cut it, and is moved in with mouse or keys.

import { Painter, percentiles } from './colour.js';
import { el, onResize, sharpen, theme } from './dom.js';
import { aspectOf } from './slice.js';
import { TileStore } from './tiles.js';

const side = 256;  // of a tile

const levelOf = (length) => Math.max(0, Math.ceil(Math.log2(Math.max(1, length / side))));

export class Planes {
  /** `events`: moved({dimension: index}), opened(axes), numbers(), failed(error). */
  constructor(panel, events) {
    this.events = events;
    this.store = new TileStore();
    this.planes = [0, 1, 2].map((k) => {
      const canvas = el('canvas', { role: 'application', tabindex: 0, 'aria-roledescription': 'plane' });
      const title = el('p', { class: 'plane-title' });
      const box = el('div', { class: 'plane' }, title, canvas);
      const plane = { canvas, title, box, data: null, end: null };
      const point = (event) => event.buttons === 1 && this.point(plane, event);
      canvas.addEventListener('pointerdown', (event) => {
        canvas.setPointerCapture(event.pointerId);
        point(event);
      });
      canvas.addEventListener('pointermove', point);
      canvas.addEventListener('dblclick', () => this.events.opened(plane.axes));
      canvas.addEventListener('keydown', (event) => this.key(plane, event));
      return plane;
    });
    panel.replaceChildren(el('div', { class: 'planes' }, ...this.planes.map(({ box }) => box),
                             el('p', { class: 'note' }, 'Drag or use the arrow keys to move the cursor; a double click or Enter shows a plane as the picture.')));
    onResize(panel, () => this.draw());
  }

  /** `volume`: three dimensions; `view` says where the cursor is, and the colours. */
  show(info, quantity, view, volume, dimensions) {
    const same = this.info === info && this.volume?.join() === volume.join();
    Object.assign(this, { info, quantity, view, volume, dimensions });
    this.planes.forEach((plane, k) => {
      plane.along = volume[k];
      plane.axes = volume.filter((d) => d !== volume[k]);
      plane.flipped = [info.dimensions?.[plane.axes[0]]?.up === true, info.dimensions?.[plane.axes[1]]?.up === false];
      if (!same) plane.data = null;
    });
    this.update();
  }

  hide() {
    for (const plane of this.planes) plane.end?.();
    this.store.clear();
    this.info = null;
  }

  /** Asks for what is not there yet. */
  update() {
    const { view } = this;
    for (const plane of this.planes) {
      const levels = plane.axes.map((d) => levelOf(this.info.shape[d]));
      const others = view.at.map((i, d) => (plane.axes.includes(d) ? 0 : i));
      const wish = { path: view.from, field: view.field, axes: plane.axes.join(','), at: others.join(','), level: levels.join(','), tile: '0,0',
                     with: levels[0] + levels[1] > 0 ? view.with : 'nearest', v: this.info.version };
      const key = JSON.stringify(wish);
      if (plane.key === key && plane.data) continue;
      plane.end?.();
      plane.key = key;
      plane.levels = levels;
      plane.end = this.store.want(wish, (data) => {
        plane.data = data;
        plane.drawn = null;
        if (view.range === null && this.planes.every((one) => one.data)) this.chooseRange(2, 98);
        this.draw();
        this.events.numbers();
      }, (error) => this.events.failed(error), (values) => this.quantity.decode(values));
    }
    this.draw();
  }

  visible() {
    return this.planes.map(({ data }) => data).filter((data) => data);
  }

  chooseRange(low, high) {
    const range = percentiles(this.visible().flatMap(({ values }) => Array.from(values)), this.quantity.missing, low, high);
    if (range) this.view.range = range;
    return range !== null;
  }

  fitRange(low, high) {
    if (!this.chooseRange(low, high)) return;
    this.repaint();
    this.events.numbers();
  }

  repaint() {
    for (const plane of this.planes) plane.drawn = null;
    this.draw();
  }

  text(d) {
    const along = this.dimensions[d];
    return along.known ? `${along.title()} ${along.text(this.view.at[d])}` : `${along.title()} ${this.view.at[d]}`;
  }

  draw() {
    if (!this.info || this.view.range === null) return;
    for (const plane of this.planes) this.drawPlane(plane);
  }

  drawPlane(plane) {
    const { canvas, data, axes } = plane;
    const room = plane.box.getBoundingClientRect();
    if (room.width < 20 || !data) return;
    const [rows, columns] = axes.map((d) => this.info.shape[d]);
    // Long thin planes are drawn at most four times as long as they are wide.
    const aspect = Math.max(columns / rows / 4, Math.min((4 * columns) / rows, aspectOf(this.info, axes)));
    const size = Math.min(room.width / columns, (room.height - 26) / (rows * aspect));
    const [width, height] = [Math.max(8, columns * size), Math.max(8, rows * aspect * size)];
    if (!plane.drawn) {
      plane.drawn = document.createElement('canvas');
      const painter = new Painter({ ...this.view, range: this.view.range }, this.quantity.missing);
      painter.paint(plane.drawn, data, { first: 0, count: data.rows }, { first: 0, count: data.columns }, plane.flipped);
    }
    const context = sharpen(canvas, width, height);
    context.imageSmoothingEnabled = false;
    // The last cell of a coarse level stands for fewer elements.
    const [high, wide] = [(data.rows * 2 ** plane.levels[0]) / rows, (data.columns * 2 ** plane.levels[1]) / columns];
    context.drawImage(plane.drawn, plane.flipped[1] ? width - width * wide : 0, plane.flipped[0] ? height - height * high : 0, width * wide, height * high);
    const place = axes.map((d, k) => ((plane.flipped[k] ? this.info.shape[d] - 1 - this.view.at[d] : this.view.at[d]) + 0.5) / this.info.shape[d]);
    context.lineWidth = 1;
    for (const [colour, dash] of [['#000', []], ['#fff', [4, 4]]]) {  // seen on any colours
      context.strokeStyle = colour;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(0, Math.round(place[0] * height) + 0.5);
      context.lineTo(width, Math.round(place[0] * height) + 0.5);
      context.moveTo(Math.round(place[1] * width) + 0.5, 0);
      context.lineTo(Math.round(place[1] * width) + 0.5, height);
      context.stroke();
    }
    context.setLineDash([]);
    context.strokeStyle = theme('edge');
    context.strokeRect(0.5, 0.5, width - 1, height - 1);
    const names = axes.map((d) => this.dimensions[d].name);
    plane.title.textContent = `${names[0]} down, ${names[1]} across · ${this.text(plane.along)}`;
    canvas.setAttribute('aria-label', `${plane.title.textContent}. Cursor at ${axes.map((d) => this.text(d)).join(', ')}. Arrow keys move it.`);
  }

  point(plane, event) {
    const box = plane.canvas.getBoundingClientRect();
    const parts = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
    const moved = {};
    plane.axes.forEach((d, k) => {
      const n = this.info.shape[d];
      const i = Math.max(0, Math.min(n - 1, Math.floor(parts[k] * n)));
      moved[d] = plane.flipped[k] ? n - 1 - i : i;
    });
    this.events.moved(moved);
  }

  key(plane, event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Enter') {
      event.preventDefault();
      this.events.opened(plane.axes);
      return;
    }
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [1, -1], ArrowRight: [1, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const d = plane.axes[step[0]];
    const by = step[1] * (event.shiftKey ? 10 : 1) * (plane.flipped[step[0]] ? -1 : 1);
    this.events.moved({ [d]: Math.max(0, Math.min(this.info.shape[d] - 1, this.view.at[d] + by)) });
  }
}
