// Two arrays of one shape side by side, and the first minus the second: three pictures that move together.

import { aborted, json } from './api.js';
import { numberText } from './colour.js';
import { byId, el, shapeText } from './dom.js';
import { Quantity } from './quantity.js';
import { SliceView } from './slice.js';

export class Compare {
  /** `events`: chosen(path), pointer(row, column, text), numbers(), moved(), failed(error). */
  constructor(panel, events) {
    this.events = events;
    this.list = el('datalist', { id: 'others' });
    this.input = el('input', { type: 'text', id: 'other', list: 'others', autocomplete: 'off', placeholder: 'path of another array', 'aria-label': 'Array to compare with' });
    this.note = el('p', { class: 'note', role: 'status', id: 'compare-note' });
    const names = ['this', 'the other', 'difference'];
    this.boxes = names.map((name, k) => {
      const map = el('div', { class: 'map', role: 'application', id: `compare-${k}`, 'aria-label': `Picture of ${name}. Arrow keys pan, plus and minus zoom, 0 shows all of it.` });
      const title = el('p', { class: 'plane-title' });
      return { map, title, box: el('div', { class: 'compared' }, title, map) };
    });
    panel.replaceChildren(el('form', { class: 'compare-form', onsubmit: (event) => {
      event.preventDefault();
      this.events.chosen(this.input.value.trim());
    } }, el('label', { for: 'other' }, 'Compare with'), this.input, this.list, el('button', { class: 'quiet' }, 'Compare')), this.note,
                          el('div', { class: 'comparison' }, ...this.boxes.map(({ box }) => box)));
    this.input.addEventListener('change', () => this.events.chosen(this.input.value.trim()));
    this.views = this.boxes.map(({ map }, k) => new SliceView(map, {
      pointer: (row, column) => this.point(row, column),
      moved: () => this.events.moved(),
      keyed: () => {},
      numbers: () => (k < 2 ? this.shared() : this.sum()),
      changed: () => {},
      status: () => {},
      failed: (error) => this.events.failed(error),
    }));
    this.views.forEach((one) => one.map.on('move zoom', () => this.follow(one)));
  }

  /** All others show what one shows. */
  follow(one) {
    if (this.following || !this.shown) return;
    this.following = true;
    for (const other of this.views) {
      if (other !== one) other.map.setView(one.map.getCenter(), one.map.getZoom(), { animate: false });
    }
    this.following = false;
  }

  /** The arrays beside this one that have its shape, to choose from. */
  async offer(path, shape) {
    this.list.replaceChildren();
    const parent = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
    try {
      const { children } = await json('api/tree', { path: parent });
      const fits = children.filter((child) => child.shape?.join() === shape.join()).map(({ name }) => (parent ? `${parent}/${name}` : name));
      this.list.replaceChildren(...fits.filter((other) => other !== path).map((other) => el('option', { value: other })));
    } catch {
      // A path can still be typed.
    }
  }

  /** Says why nothing is compared. */
  say(text) {
    this.hide();
    this.note.textContent = text;
    for (const { box } of this.boxes) box.hidden = true;
    document.body.classList.add('uncompared');
  }

  async show(info, quantity, view, where) {
    const generation = (this.generation = {});
    if (this.offered !== view.from) {
      this.offered = view.from;
      this.offer(view.from, info.shape);
    }
    this.input.value = view.other ?? '';
    if (!view.other) return this.say('Name another array of the same shape: both are shown side by side, with their difference.');
    let other;
    try {
      other = await json('api/picture', { path: view.other });
      if (other.pictures.includes(view.field)) other = await json('api/picture', { path: view.other, field: view.field });
      else if (other.pictures.length > 0) other = await json('api/picture', { path: view.other, field: other.pictures[0] });
    } catch (error) {
      return aborted(error) ? undefined : this.say(error.message);
    }
    if (this.generation !== generation) return undefined;
    if (other.shape.join() !== info.shape.join()) {
      return this.say(`${view.other} has the shape ${shapeText(other.shape)}, and this array ${shapeText(info.shape)}: only arrays of one shape are compared.`);
    }
    if (other.kind !== 'number' && other.kind !== 'bool') return this.say(`${view.other} holds no numbers.`);
    Object.assign(this, { info, quantity, view, other, others: new Quantity(other) });
    this.field = other.pictures.includes(view.field) ? view.field : other.pictures[0] ?? null;
    this.shown = true;
    this.ranging = view.range === null;
    this.note.textContent = '';
    for (const { box } of this.boxes) box.hidden = false;
    document.body.classList.remove('uncompared');
    const common = { composite: { value: null }, range: { get: () => view.range, set: (range) => (view.range = range) } };
    const second = { from: { value: view.other }, field: { value: this.field } };
    const first = { ...info, levels: [] };
    const minus = { from: view.other, field: this.field, version: other.version, node: other.node, quantity: this.others };
    this.difference = Object.create(view, { composite: { value: null }, range: { value: null, writable: true }, map: { value: 'diverging' },
                                            scale: { value: 'linear' }, minus: { value: minus } });
    const titles = [view.from, view.other, `${view.from} − ${view.other}`];
    this.boxes.forEach(({ title }, k) => (title.textContent = titles[k]));
    this.views[0].show(first, quantity, Object.create(view, common), where);
    this.views[1].show({ ...other, levels: [], dimensions: info.dimensions }, this.others, Object.create(view, { ...common, ...second }), where);
    this.views[2].show({ ...first, kind: 'number', phase: false }, quantity, this.difference, where);
    return undefined;
  }

  hide() {
    this.shown = false;
    this.generation = null;
    this.views.forEach((one) => one.hide());
  }

  update() {
    return Promise.all(this.views.map((one) => one.update()));
  }

  repaint() {
    this.views.slice(0, 2).forEach((one) => one.repaint());
  }

  /** Both arrays have one range, of what is in view of both. */
  fitRange(low, high) {
    if (!this.shown || !this.views[0].chooseRange(this.visible(), low, high)) return;
    this.repaint();
    this.events.numbers();
  }

  visible() {
    return this.shown ? [...this.views[0].visible(), ...this.views[1].visible()] : [];
  }

  where() {
    return this.shown ? this.views[0].where() : null;
  }

  fitPicture() {
    if (this.shown) this.views[0].fitPicture();
  }

  /** The range of one is that of the other; without a wish it is that of both. */
  shared() {
    if (this.ranging && this.views.slice(0, 2).every((one) => one.visible().length > 0)) {
      this.ranging = false;
      this.views[0].chooseRange(this.visible());
    }
    this.repaint();
    this.events.numbers();
  }

  /** What the difference in view amounts to. */
  sum() {
    if (!this.shown || this.views[2].visible().length === 0) return;
    let [least, most, count, different] = [Infinity, -Infinity, 0, 0];
    for (const { values } of this.views[2].visible()) {
      for (const v of values) {
        if (v !== v) continue;
        ++count;
        if (v !== 0) ++different;
        if (v < least) least = v;
        if (v > most) most = v;
      }
    }
    this.note.textContent = count === 0 ? 'Nothing to compare in view: all is missing.'
      : different === 0 ? 'No difference in view.'
      : `Differences in view: ${numberText(least)} to ${numberText(most)}, in ${different.toLocaleString('en')} of ${count.toLocaleString('en')} cells.`;
    const units = this.quantity.moments ? '' : this.quantity.units;
    const most2 = this.difference.range?.[1];
    if (most2 !== undefined) this.boxes[2].title.textContent = `${this.view.from} − ${this.view.other} · colours −${numberText(most2)} to ${numberText(most2)}${units && ` ${units}`}`;
  }

  point(row, column) {
    if (row === null || !this.shown) return;
    this.events.pointer(row, column);
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const at = [...this.view.at];
    [at[this.view.axes[0]], at[this.view.axes[1]]] = [row, column];
    json('api/value', { path: this.view.other, field: this.field, at: at.join(',') }, asking.signal).then(({ text, missing }) => {
      byId('beside').textContent = `${this.view.other}: ${this.others.element(text, missing).text}`;
    }, (error) => aborted(error) || this.events.failed(error));
  }
}
