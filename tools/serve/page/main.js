// The page: what is chosen in the tree is shown as a picture, a line, a table, a map of chunks, or in words.

import { aborted, json, known } from './api.js';
import { Dimension, unitText } from './axes.js';
import { channelComposite, colourComposite, multiscaleOf } from './channels.js';
import { ChunkMap } from './chunks.js';
import { colours, css, knownMap, loadColours, mapNames, numberText, Scale } from './colour.js';
import { details, readDetails } from './details.js';
import { bytesText, byId, el, onceAFrame, settled, shapeText, sharpen, theme, typeText } from './dom.js';
import { drawFrame } from './frame.js';
import { Members } from './group.js';
import { Histogram } from './histogram.js';
import { LineReader, Plot } from './profile.js';
import { Quantity } from './quantity.js';
import { Table } from './table.js';
import { Take } from './take.js';
import { Tree } from './tree.js';
import { linkOf, parseLink, view } from './view.js';
import { volumeOf } from './volume.js';
import { Watch } from './watch.js';

const tabNames = { members: 'Members', picture: 'Picture', planes: 'Planes', compare: 'Compare', line: 'Line', table: 'Table', chunks: 'Chunks', details: 'Details' };

/** Colours of a drawing on white. */
const paper = { ink: '#1d2430', soft: '#4a5260', line: '#868b94' };
const paperWidth = 680;  // between the margins of A4 and Letter, in CSS pixels

class Page {
  constructor() {
    this.tree = new Tree((path) => this.open(path, {}));
    this.histogram = new Histogram(byId('histogram'), (low, high) => this.setRange(low, high));
    this.profile = new Plot(byId('profile'), 120);
    this.profiles = new LineReader();
    this.table = new Table(byId('panel-table'), (error) => this.fail(error));
    this.chunks = new ChunkMap(byId('panel-chunks'), (error) => this.fail(error));
    this.members = new Members(byId('panel-members'), (path) => this.open(path, {}), (error) => this.fail(error));
    this.linePlot = null;
    this.pointer = null;
    this.askValue = settled((at) => this.readValue(at), 50);
    this.askProfile = settled(() => this.readProfile(), 120);
    this.saveLink = settled(() => this.writeLink(), 150);
    this.frameLater = onceAFrame(() => this.frame());
    this.paintLater = onceAFrame(() => {
      this.pictures?.repaint();
      this.showRange();
    });
    this.controls();
    this.take = new Take(() => this.taken());
    this.watch = new Watch(() => (this.info && !this.loading ? { path: view.from, node: this.info.node, version: this.info.version, tells: this.info.tells_changes } : null),
                           { changed: () => this.changed(), gone: () => this.fail(new Error(`${view.path || 'The array'} is not there any more.`)),
                             lost: () => (byId('lost').hidden = false), back: () => (byId('lost').hidden = true) });
  }

  // ---- start

  async start() {
    this.theme();
    try {
      await loadColours();
      this.mapChoices();
      if (window.L) {
        const { SliceView } = await import('./slice.js');
        this.slice = new SliceView(byId('map'), {
          pointer: (row, column, cell) => this.pointAt(row, column, cell),
          moved: () => this.saveLink(),
          framed: () => this.frameLater(),
          keyed: (by) => (byId('cross').hidden = !by),
          numbers: () => (view.composite ? this.channelControls() : this.showRange()),
          changed: () => this.changed(),
          status: (text) => (byId('status').textContent = text),
          failed: (error) => this.fail(error),
        });
      }
      const wishes = parseLink(location.hash);
      const tree = this.tree.load();
      let path = wishes.path;
      if (path === undefined) {
        const first = await json('api/first');
        known(first);
        path = first.path;
      }
      await tree;
      await this.open(path ?? '', wishes);
    } catch (error) {
      this.fail(error);
    }
    addEventListener('hashchange', () => {
      if (location.hash === this.written) return;
      const wished = parseLink(location.hash);
      this.entry = wished.path ?? view.path ?? '';
      this.written = location.hash;
      this.open(this.entry, wished);
    });
  }

  fail(error) {
    if (aborted(error)) return;
    const place = byId('error');
    place.dataset.kind = 'error';
    place.textContent = error.message;
    place.hidden = false;
  }

  // ---- nodes

  async open(path, wishes) {
    if (this.entry === undefined) this.writeLink();  // what came first is an entry, too, however soon it is left
    this.opening?.abort();
    const opening = (this.opening = new AbortController());
    this.loading = opening;
    byId('error').hidden = true;
    document.body.classList.remove('menu-open');
    byId('menu').setAttribute('aria-expanded', 'false');
    try {
      const node = await json('api/info', { path }, opening.signal);
      const scales = node.shape ? null : multiscaleOf(node.attributes);
      const from = scales ? [path, scales.datasets[0]].filter((part) => part).join('/') : path;
      const whole = node.shape || scales ? await json('api/picture', { path: from }, opening.signal).catch((error) => {
        if (node.shape || aborted(error)) throw error;
        return null;  // the group is shown as any other
      }) : null;
      // What is shown of structures is one of their fields, but for a table of all.
      const field = whole?.pictures.includes(wishes.field) ? wishes.field : whole?.pictures[0] ?? null;
      const info = field === null ? whole : await json('api/picture', { path: from, field }, opening.signal);
      if (info && whole.complex) info.phase = field === 'phase';
      if (scales && whole) info.levels = await this.levels(path, scales, info, opening.signal);
      if (opening.signal.aborted) return;
      this.hidePictures();
      this.stopPlaying();
      this.node = node;
      this.info = info;
      this.whole = whole;
      this.pointer = null;
      view.path = path;
      view.from = whole ? from : path;
      this.scales = whole ? scales : null;
      view.field = field;
      this.tree.select(path);
      this.heading();
      byId('save').hidden = !info || info.shape.includes(0);
      if (info) this.prepare(wishes);
      this.tabs(wishes.tab);
    } catch (error) {
      if (!aborted(error)) this.empty(path, error);
      this.fail(error);
    } finally {
      if (this.loading === opening) this.loading = null;
    }
  }

  /** Nothing of the array before stays where another one could not be opened. */
  empty(path, error) {
    this.hidePictures();
    this.stopPlaying();
    this.node = this.info = this.whole = this.scales = null;
    view.path = view.from = path;
    byId('name').textContent = error.status === 404 ? 'Not found' : 'Not readable';
    document.title = `${byId('name').textContent} – Tessera`;
    byId('facts').replaceChildren(el('span', {}, path));
    byId('crumbs').replaceChildren();
    byId('tabs').replaceChildren();
    byId('save').hidden = true;
    for (const name of Object.keys(tabNames)) byId(`panel-${name}`).hidden = true;
    document.body.classList.add('no-tools');
  }

  /** The stored levels of an image that halve it, and those of the others: [{path, power}]. */
  async levels(path, scales, info, signal) {
    const { children } = await json('api/tree', { path }, signal);
    const shapes = new Map(children.map((child) => [child.name, child.shape]));
    const found = [];
    for (const name of scales.datasets.slice(1)) {
      const shape = shapes.get(name);
      if (!shape || shape.length !== info.shape.length) continue;
      const power = Math.round(Math.log2(info.shape[info.axes[0]] / shape[info.axes[0]]));
      const fits = shape.every((n, d) => n === (info.axes.includes(d) ? Math.ceil(info.shape[d] / 2 ** power) : info.shape[d]));
      if (power > 0 && fits) found.push({ path: [path, name].filter((part) => part).join('/'), power });
    }
    return found;
  }

  /** What is shown is not what is stored any more. */
  changed() {
    const place = byId('error');
    if (!place.hidden && place.dataset.kind === 'changed') return;
    place.dataset.kind = 'changed';
    const again = () => {
      const link = parseLink(location.hash);
      delete link.range;
      this.open(view.path, link);
    };
    place.replaceChildren('This array was changed while you looked at it. ', el('button', { type: 'button', id: 'reload', onclick: again }, 'Show it as it is now'));
    place.hidden = false;
  }

  heading() {
    const { node, whole: info } = this;
    const parts = view.path === '' ? [] : view.path.split('/');
    const name = parts.at(-1) ?? (this.scales ? this.scales.name || 'Image' : info ? 'Array' : 'All arrays');
    byId('name').textContent = name;
    document.title = `${name} – Tessera`;
    const crumbs = parts.slice(0, -1).map((part, k) => el('button', { type: 'button', class: 'crumb', onclick: () => this.open(parts.slice(0, k + 1).join('/'), {}) }, part));
    byId('crumbs').replaceChildren(...crumbs.flatMap((crumb) => [crumb, el('span', { 'aria-hidden': 'true' }, '/')]));
    const quantity = info && [info.label, info.units && `in ${unitText(info.units)}`].filter((word) => word).join(' ');
    const facts = info ? [shapeText(info.shape), info.kind === 'structure' ? `${info.fields.length} fields` : typeText(info.dtype), quantity, info.shape.includes(0) && 'no elements', node.format,
                          this.scales ? `${1 + info.levels.length} levels` : bytesText(node.logical_bytes)]
                       : [node.format ? `group, ${node.format}` : 'group', `${node.children} nodes`];
    byId('facts').replaceChildren(...facts.filter((fact) => fact).map((fact) => el('span', {}, fact)));
  }

  /** Takes what a link wishes, as far as the array has it, and the usual for the rest. */
  prepare(wishes) {
    const { info } = this;
    const rank = info.shape.length;
    const axis = (d) => d >= 0 && d < rank;
    this.composite = this.scales ? channelComposite(this.scales, info.shape) : colourComposite(info);
    const usual = this.composite && info.axes.includes(this.composite.axis)
      ? info.shape.map((_, d) => d).filter((d) => d !== this.composite.axis && info.shape[d] > 1).slice(-2) : info.axes;
    view.axes = wishes.axes?.every(axis) ? wishes.axes : usual.length === 2 ? usual : info.axes;
    view.composite = this.composite && wishes.colour !== 'off' && !view.axes.includes(this.composite.axis) ? this.composite : null;
    const at = wishes.at?.length === rank && wishes.at.every((i, d) => i < info.shape[d]) ? wishes.at : info.middle;
    view.at = [...at];
    view.with = wishes.with ?? 'mean';
    view.map = wishes.map && knownMap(wishes.map) ? wishes.map : this.usualMap();
    view.scale = wishes.scale ?? 'linear';
    view.flip = wishes.flip ?? null;
    this.quantity = new Quantity(info);
    this.dimensions = info.shape.map((length, d) => new Dimension(info.names[d], length, info.dimensions?.[d] ?? null));
    this.turn();
    view.range = wishes.range ?? null;
    view.where = wishes.where ?? null;
    view.other = wishes.other ?? null;
    byId('beside').textContent = '';
    view.along = axis(wishes.along ?? -1) ? wishes.along : view.axes[1] ?? 0;
    byId('with').value = view.with;
    this.showLook();
    this.fieldControl();
    this.axisControls();
    this.sliders();
    this.channelControls();
    this.legend();
    byId('value').textContent = '–';
    this.profile.clear();
  }

  // ---- tabs

  available() {
    const { info, whole } = this;
    if (!info) return ['members', 'details'];
    const empty = info.shape.includes(0);
    const pictured = info.kind === 'number' || info.kind === 'bool';
    const found = [];
    if (pictured && info.shape.length >= 2 && !empty && this.slice) found.push('picture');
    if (found.length && volumeOf(info, view.axes, view.composite?.axis)) found.push('planes');
    if (found.length) found.push('compare');
    if (pictured && info.shape.length === 1 && !empty) found.push('line');
    if (!empty && this.columned()) found.unshift('table');
    else if (!empty) found.push('table');
    if (whole.mapped && whole.shape.length > 0 && !empty) found.push('chunks');
    if (this.scales) found.push('members');
    return [...found, 'details'];
  }

  /** Whether the table has a column for each field. */
  columned() {
    return this.whole.kind === 'structure' && this.whole.shape.length < 2;
  }

  tabs(wished) {
    const names = this.available();
    byId('tabs').replaceChildren(...names.map((name) =>
      el('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `panel-${name}`, onclick: () => this.tab(name),
                     onkeydown: (event) => this.tabKey(event, names, name) }, tabNames[name])));
    this.tab(names.includes(wished) ? wished : names[0]);
    const wants = this.info && this.info.shape.length >= 2 && ['number', 'bool'].includes(this.info.kind) && !window.L;
    if (wants) this.fail(new Error('This build of Tessera has no Leaflet, so there are no pictures here: install libjs-leaflet and build again.'));
  }

  tabKey(event, names, name) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = names[(names.indexOf(name) + step + names.length) % names.length];
    this.tab(next);
    byId(`tab-${next}`).focus();
  }

  tab(name) {
    view.tab = name;
    for (const other of Object.keys(tabNames)) {
      byId(`panel-${other}`).hidden = other !== name;
      const button = byId(`tab-${other}`);
      button?.setAttribute('aria-selected', String(other === name));
      button?.setAttribute('tabindex', other === name ? '0' : '-1');
      if (other === name) button?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    }
    document.body.dataset.tab = name;
    if (!this.pointer) byId('index').textContent = `Point at the ${name === 'line' ? 'line' : 'picture'}`;
    const rank = this.info?.shape.length ?? 0;
    const fields = (this.whole?.pictures.length ?? 0) > 0;
    byId('tool-slice').hidden = rank < 2 && !fields;
    document.body.classList.toggle('no-tools', name === 'details' || (name === 'table' && this.columned()) || (rank < 2 && name !== 'line'));
    this.refresh();
    this.saveLink();
  }

  refresh() {
    const slice = { path: view.from, field: view.field, axes: view.axes, at: view.at, version: this.info?.version };
    const drawn = view.tab === 'compare' ? this.slice : this.compare;  // what was shown before
    if (drawn?.info?.node === this.info?.node && drawn?.where()) view.where = drawn.where();
    if (view.tab === 'picture') {
      this.slice.show(this.info, this.quantity, view, view.where);
    } else {
      if (this.slice?.info === this.info && this.slice?.layer) view.where = this.slice.where();
      this.slice?.hide();
    }
    if (view.tab === 'planes') this.showPlanes();
    else this.planes?.hide();
    if (view.tab === 'compare') this.showCompared();
    else this.compare?.hide();
    if (view.tab === 'members') this.members.show(view.path, this.node);
    if (view.tab === 'line') this.showLine();
    if (view.tab === 'table' && this.whole.complex) this.table.show(this.whole, { ...slice, field: null });
    else if (view.tab === 'table' && this.columned()) this.table.show(this.whole, { ...slice, field: null, at: this.whole.middle });
    else if (view.tab === 'table') this.table.show(this.info, slice, this.quantity);
    if (view.tab === 'chunks') this.chunks.show(this.whole, this.whole.shape.length === this.info.shape.length ? slice : { ...slice, axes: this.whole.axes, at: this.whole.middle });
    if (view.tab === 'details') this.showDetails();
  }

  hidePictures() {
    for (const one of [this.slice, this.planes, this.compare]) one?.hide();
  }

  /** What shows pictures now: each has visible(), repaint(), update() and fitRange(). */
  get pictures() {
    return { picture: this.slice, planes: this.planes, compare: this.compare }[view.tab] ?? null;
  }

  async showPlanes() {
    if (!this.planes) {
      const { Planes } = await import('./planes.js');
      this.planes ??= new Planes(byId('panel-planes'), {
        moved: (to) => this.moveCursor(to),
        opened: (axes) => {
          view.axes = axes;
          view.where = null;
          this.axesChanged();
          this.tab('picture');
        },
        numbers: () => this.showRange(),
        failed: (error) => this.fail(error),
      });
    }
    const volume = volumeOf(this.info, view.axes, view.composite?.axis);
    if (view.tab !== 'planes' || !volume) return;
    this.planes.show(this.info, this.quantity, view, volume, this.dimensions);
    this.pointAt(view.at[view.axes[0]], view.at[view.axes[1]], null);
  }

  /** The cursor of the three planes: {dimension: index}. */
  moveCursor(to) {
    for (const [d, i] of Object.entries(to)) {
      const slider = this.shownIndex.get(Number(d));
      if (slider) slider(i);
      else view.at[d] = i;
    }
    this.planes.update();
    this.pointAt(view.at[view.axes[0]], view.at[view.axes[1]], null);
    this.saveLink();
  }

  async showCompared() {
    if (!this.compare) {
      const { Compare } = await import('./compare.js');
      this.compare ??= new Compare(byId('panel-compare'), {
        chosen: (path) => {
          view.other = path || null;
          this.refresh();
          this.saveLink();
        },
        pointer: (row, column) => this.pointAt(row, column, null),
        moved: () => this.saveLink(),
        numbers: () => this.showRange(),
        failed: (error) => this.fail(error),
      });
    }
    if (view.tab === 'compare') await this.compare.show(this.info, this.quantity, view, view.where);
  }

  async showDetails() {
    const panel = byId('panel-details');
    panel.replaceChildren(...details(this.node));
    if (!this.info || !this.info.mapped) return;
    try {
      const node = await readDetails(view.path, this.opening.signal);
      if (view.tab === 'details' && node.path === view.path) panel.replaceChildren(...details(node));
    } catch (error) {
      this.fail(error);
    }
  }

  async showLine() {
    this.linePlot ??= new Plot(byId('line'), 'fill', (index, value) => {
      byId('index').textContent = this.placeText([index]);
      byId('value').textContent = this.quantity.full(value);
      this.askValue([index]);
    });
    try {
      const line = await json('api/profile', { path: view.from, field: view.field, axis: 0, width: 1024 }, this.opening.signal);
      this.linePlot.show(line, null, `All elements along ${line.name}`, this.quantity, this.dimensions[0], this.label());
    } catch (error) {
      this.fail(error);
    }
  }

  // ---- controls

  controls() {
    const chosen = () => {
      view.map = byId('map-name').value + (byId('map-reversed').checked ? '_r' : '');
      this.chosenMap = view.map;
      this.legend();
      if (view.map.startsWith('diverging') && view.range) {
        const most = Math.max(Math.abs(view.range[0]), Math.abs(view.range[1]));
        view.range = [-most, most];
      }
      this.pictures?.repaint();
      this.showRange();
    };
    byId('map-name').addEventListener('change', chosen);
    byId('map-reversed').addEventListener('change', chosen);
    byId('scale').addEventListener('change', (event) => {
      view.scale = event.target.value;
      this.pictures?.repaint();
      this.showRange();
    });
    for (const [id, which] of [['flip-rows', 0], ['flip-columns', 1]]) {
      byId(id).addEventListener('change', (event) => {
        const by = this.usualFlip();
        view.flip = [...view.flipped];
        view.flip[which] = event.target.checked !== by[which];
        if (view.flip.every((flip, k) => flip === by[k])) view.flip = null;
        this.turn();
        view.where = this.slice?.layer ? this.slice.where() : null;
        this.refresh();
        this.saveLink();
      });
    }
    byId('as-colours').addEventListener('change', (event) => {
      view.composite = event.target.checked ? this.composite : null;
      view.where = this.slice?.layer ? this.slice.where() : null;
      this.channelControls();
      this.sliders();
      this.refresh();
      this.saveLink();
    });
    byId('field').addEventListener('change', (event) => this.setField(event.target.value));
    byId('with').addEventListener('change', (event) => {
      view.with = event.target.value;
      this.pictures?.update();
      this.saveLink();
    });
    const typed = (which) => (event) => {
      const range = [...(view.range ?? [NaN, NaN])];  // the other field may show fewer digits than the number has
      range[which] = this.quantity.parse(event.target.value);
      if (range.every(Number.isFinite)) this.setRange(Math.min(...range), Math.max(...range));
    };
    byId('low').addEventListener('change', typed(0));
    byId('high').addEventListener('change', typed(1));
    byId('fit-view').addEventListener('click', () => this.pictures?.fitRange(2, 98));
    byId('fit-all').addEventListener('click', () => this.pictures?.fitRange(0, 100));
    byId('profile-axis').addEventListener('change', (event) => {
      view.along = Number(event.target.value);
      this.readProfile();
      this.saveLink();
    });
    byId('help').addEventListener('click', () => byId('keys').showModal());
    document.addEventListener('keydown', (event) => this.key(event));
    byId('menu').addEventListener('click', () => {
      const open = document.body.classList.toggle('menu-open');
      byId('menu').setAttribute('aria-expanded', String(open));
    });
    byId('link').addEventListener('click', () => this.copyLink());
    byId('theme').addEventListener('click', () => this.theme(true));
    addEventListener('beforeprint', () => this.beforePrint());
    addEventListener('afterprint', () => this.afterPrint());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  /** Keys that work wherever nothing is typed. */
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    if (event.target.closest?.('input:not([type="range"], [type="checkbox"]), select, textarea, dialog')) return;
    const slider = document.querySelector('#sliders .slider input[type="range"]');
    const step = (by) => {
      if (!slider) return;
      slider.value = Number(slider.value) + by;
      slider.dispatchEvent(new Event('input'));
    };
    const work = {
      '?': () => byId('keys').showModal(),
      '/': () => {
        document.body.classList.add('menu-open');
        byId('search').focus();
      },
      s: () => byId('save').hidden || this.take.show(),
      '[': () => step(-1),
      ']': () => step(1),
      p: () => document.querySelector('#sliders .play')?.click(),
      r: () => this.pictures?.fitRange(2, 98),
      0: () => this.pictures?.fitPicture?.(),
    }[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  }

  fieldControl() {
    const { pictures } = this.whole;
    byId('field').replaceChildren(...pictures.map((name) => el('option', { value: name, selected: view.field === name }, name)));
    byId('field-label').hidden = pictures.length === 0;
    byId('field-label').firstChild.textContent = this.whole.complex ? 'Part ' : 'Field ';
  }

  /** Another field of the same elements; the place stays, where it has the same dimensions. */
  setField(field) {
    const same = this.whole.shape.length === this.info.shape.length;
    const where = !same ? null : view.tab === 'picture' && this.slice?.layer ? this.slice.where() : view.where;
    this.open(view.path, { field, tab: view.tab, axes: same ? view.axes : undefined, at: same ? view.at : undefined, where, with: view.with, along: view.along });
  }

  axisControls() {
    const { names, shape } = this.info;
    if (shape.length < 2) {
      byId('axes').replaceChildren();
      return;
    }
    const picker = (which, label) =>
      el('label', {}, label, el('select', { id: which === 0 ? 'axis-rows' : 'axis-columns', onchange: (event) => this.setAxis(which, Number(event.target.value)) },
                                ...names.map((name, d) => el('option', { value: d, selected: view.axes[which] === d }, name))));
    byId('axes').replaceChildren(picker(0, 'Down'), picker(1, 'Across'));
    byId('profile-axis').replaceChildren(...names.map((name, d) => el('option', { value: d, selected: view.along === d }, name)));
  }

  /** An axis that is already shown changes places with the other one. */
  setAxis(which, d) {
    const axes = [...view.axes];
    if (axes[1 - which] === d) axes[1 - which] = axes[which];
    axes[which] = d;
    view.axes = axes;
    view.where = null;
    this.axesChanged();
    this.refresh();
    this.saveLink();
  }

  axesChanged() {
    const { axes } = view;
    view.flip = null;
    if (this.composite) view.composite = byId('as-colours').checked && !axes.includes(this.composite.axis) ? this.composite : null;
    this.turn();
    this.channelControls();
    this.axisControls();
    this.sliders();
  }

  /** North, and up, is at the top; as files have it else. */
  usualFlip() {
    const [rows, columns] = view.axes.map((d) => this.info.dimensions?.[d] ?? null);
    return [rows?.up === true, columns?.up === false];
  }

  /** Which axes are drawn from their ends. The boxes say what differs from the usual. */
  turn() {
    const by = this.usualFlip();
    view.flipped = view.flip ?? by;
    byId('flip-rows').checked = view.flipped[0] !== by[0];
    byId('flip-columns').checked = view.flipped[1] !== by[1];
  }

  sliders() {
    const { names, shape } = this.info;
    const others = names.map((_, d) => d).filter((d) => shape.length > 2 && !view.axes.includes(d) && shape[d] > 1 && d !== view.composite?.axis);
    this.stopPlaying();
    this.shownIndex = new Map();
    byId('sliders').replaceChildren(...others.map((d) => {
      const along = this.dimensions[d];
      const most = shape[d] - 1;
      const number = el('input', { type: 'number', min: 0, max: most, value: view.at[d], 'aria-label': `Index along ${names[d]}` });
      const range = el('input', { type: 'range', min: 0, max: most, value: view.at[d], 'aria-label': `Slice along ${names[d]}`, id: `slider-${d}` });
      const place = along.known ? el('input', { type: 'text', class: 'place', id: `place-${d}`, autocomplete: 'off', 'aria-label': `${along.title()} of the slice` }) : null;
      const play = el('button', { type: 'button', class: 'play', id: `play-${d}`, 'aria-label': `Play along ${names[d]}`, 'aria-pressed': 'false', title: 'Play',
                                  onclick: () => this.play(d, play) }, '▶');
      const show = (i) => {
        number.value = range.value = i;
        range.setAttribute('aria-valuetext', along.known ? `${along.text(i)} ${along.units}`.trim() : String(i));
        if (place) place.value = along.text(i);
      };
      const set = (value) => {
        const i = Math.max(0, Math.min(most, Math.round(Number(value) || 0)));
        show(i);
        this.setIndex(d, i);
      };
      this.shownIndex.set(d, set);
      range.addEventListener('input', () => set(range.value));
      number.addEventListener('change', () => set(number.value));
      place?.addEventListener('change', () => {
        const found = along.find(place.value);
        place.setAttribute('aria-invalid', String(found === null));
        if (found !== null) set(found);
      });
      show(view.at[d]);
      return el('div', { class: 'slider' }, el('span', { class: 'axis' }, along.title()), el('span', { class: 'of' }, `of ${shape[d].toLocaleString('en')}`),
                range, play, number, place);
    }));
  }

  /** Shows one slice after the other along a dimension, again from the beginning at its end, until it is pressed again. */
  async play(d, button) {
    const plays = this.playing?.d === d;
    this.stopPlaying();
    if (plays) return;
    const playing = (this.playing = { d, button });
    button.setAttribute('aria-pressed', 'true');
    button.textContent = '❚❚';
    while (this.playing === playing) {
      const beat = new Promise((resolve) => setTimeout(resolve, 200));
      this.shownIndex.get(d)((view.at[d] + 1) % this.info.shape[d]);
      await Promise.all([beat, this.stepping]);
    }
  }

  stopPlaying() {
    this.playing?.button.setAttribute('aria-pressed', 'false');
    if (this.playing) this.playing.button.textContent = '▶';
    this.playing = null;
  }

  setIndex(d, i) {
    if (view.at[d] === i) return;
    view.at[d] = i;
    this.saveLink();
    if (view.tab === 'planes') {
      this.planes?.update();
      this.pointAt(view.at[view.axes[0]], view.at[view.axes[1]], null);
      return;
    }
    if (view.tab !== 'picture' && view.tab !== 'compare') {
      this.refreshLater ??= settled(() => this.refresh(), 120);
      this.refreshLater();
      return;
    }
    this.step();
  }

  /** One slice after the other: while one is on its way, only the latest wish is kept. */
  async step() {
    this.stepAgain = true;
    this.frameLater();
    if (this.stepping) return;
    let done;
    this.stepping = new Promise((resolve) => (done = resolve));
    while (this.stepAgain) {
      this.stepAgain = false;
      const late = new Promise((resolve) => setTimeout(resolve, 400));
      await Promise.race([this.pictures?.update(), late]);
    }
    this.stepping = null;
    done();
    if (this.pointer) this.pointAt(...this.pointer, null);
  }

  // ---- colours

  setRange(low, high) {
    view.range = [low, high];
    if (this.slice) this.slice.needsRange = false;
    this.paintLater();
  }

  showRange() {
    if (!this.pictures || !view.range) return;
    const sources = this.pictures.visible();
    this.histogram.show(sources.length ? sources : this.pictures.glance ? [this.pictures.glance] : [], this.quantity, view);
    this.frameLater();
    const span = view.range[1] - view.range[0];
    for (const [id, v] of [['low', view.range[0]], ['high', view.range[1]]]) {
      if (document.activeElement !== byId(id)) byId(id).value = this.quantity.typed(v, span);
    }
    this.saveLink();
  }

  /** The choices of maps, as the server draws them. */
  mapChoices() {
    const groups = { diverging: 'For special numbers', cyclic: 'For special numbers', labels: 'For special numbers' };
    const option = (name) => el('option', { value: name }, name[0].toUpperCase() + name.slice(1));
    const names = mapNames();
    byId('map-name').replaceChildren(el('optgroup', { label: 'Even steps' }, ...names.filter((name) => !groups[name]).map(option)),
                                     el('optgroup', { label: 'For special numbers' }, ...names.filter((name) => groups[name]).map(option)));
  }

  /** The map that suits an array where nothing was chosen: for phases and labels their own. */
  usualMap() {
    const { info } = this;
    const name = view.path.split('/').at(-1) ?? '';
    if (info.phase) return 'cyclic';
    if (/^[<>|]?[iu]/.test(info.dtype) && /label|mask|segment|classes/i.test(name) && knownMap('labels')) return 'labels';
    return this.chosenMap ?? 'viridis';
  }

  showLook() {
    byId('map-name').value = view.map.replace(/_r$/, '');
    byId('map-reversed').checked = view.map.endsWith('_r');
    byId('scale').value = view.scale;
  }

  // ---- channels

  channelControls() {
    const { composite } = this;
    byId('tool-channels').hidden = !composite || view.axes.includes(composite.axis);
    document.body.classList.toggle('composite', view.composite !== null);
    this.frameLater();
    if (!composite) return;
    byId('as-colours').checked = view.composite !== null;
    byId('as-colours-text').textContent = composite.fixed ? 'As red, green and blue' : 'All in one picture';
    const place = byId('channels');
    if (composite.fixed || !view.composite) {
      place.replaceChildren();
      return;
    }
    if (place.contains(document.activeElement)) return;  // somebody is at it
    const hex = (colour) => `#${colour.toString(16).padStart(6, '0')}`;
    place.replaceChildren(...composite.channels.map((channel) => {
      const again = () => {
        this.slice?.repaint();
        this.frameLater();
      };
      const end = (which, label) => el('input', { type: 'number', step: 'any', value: channel.range?.[which] ?? '', 'aria-label': `${label} of ${channel.name}`,
        onchange: (event) => {
          const range = [...(channel.range ?? [0, 1])];
          range[which] = event.target.valueAsNumber;
          if (!range.every(Number.isFinite) || range[0] >= range[1]) return;
          channel.range = range;
          again();
        } });
      return el('div', { class: 'channel' },
                el('label', {}, el('input', { type: 'checkbox', checked: channel.on, onchange: (event) => {
                  channel.on = event.target.checked;
                  this.slice.blend = null;
                  this.slice.update();
                  this.frameLater();
                } }), channel.name),
                el('input', { type: 'color', value: hex(channel.colour), 'aria-label': `Colour of ${channel.name}`, oninput: (event) => {
                  channel.colour = parseInt(event.target.value.slice(1), 16);
                  again();
                } }),
                end(0, 'Least'), end(1, 'Most'));
    }));
  }

  // ---- the frame

  frameWhat(map, fitted) {
    const [rows, columns] = view.axes.map((d) => this.dimensions[d]);
    const others = this.dimensions.filter((along, d) => !view.axes.includes(d) && along.length > 1 && d !== view.composite?.axis)
      .map((along) => `${along.name} ${along.known ? `= ${along.text(view.at[this.dimensions.indexOf(along)])}${along.units && ` ${along.units}`}` : `[${view.at[this.dimensions.indexOf(along)]}]`}`);
    return { map, extent: fitted, rows, columns, flipped: view.flipped, title: [this.label(), ...others].join(' · '), bar: this.bar(),
             ink: theme('ink'), soft: theme('soft'), line: theme('edge'), font: theme('sans') };
  }

  /** What the array is called above its picture. */
  label() {
    return this.info.label ?? (view.field ? `${byId('name').textContent} · ${view.field}` : byId('name').textContent);
  }

  /** The bar of colours: what they stand for. */
  bar() {
    if (view.composite) {
      const shown = view.composite.fixed ? [] : view.composite.channels.filter(({ on }) => on);
      return shown.length ? { names: shown.map(({ name, colour }) => [name, css(colour)]) } : null;
    }
    if (!view.range) return null;
    const table = colours(view.map);
    if (this.info.kind === 'bool') return { names: [['true', css(table[255])], ['false', css(table[0])]] };
    if (view.map.startsWith('labels')) return null;
    const [low, high] = view.range;
    return { scale: new Scale(view.scale, view.range), css: (at) => css(table[Math.max(0, Math.min(255, Math.floor(at * 256)))]),
             units: this.quantity.moments ? '' : this.quantity.units, text: this.quantity.moments ? (v) => this.quantity.text(v, high - low) : null };
  }

  frame() {
    const canvas = byId('frame');
    const place = byId('map');
    if (view.tab !== 'picture' || !this.slice?.info || !this.dimensions) return;
    const stage = place.parentElement;
    const context = sharpen(canvas, stage.clientWidth, stage.clientHeight);
    const map = { left: place.offsetLeft, top: place.offsetTop, width: place.clientWidth, height: place.clientHeight };
    const what = this.frameWhat(map, this.slice.extent());
    drawFrame(context, what);
    canvas.setAttribute('aria-label', `${what.title}. Down: ${what.rows.title()}, across: ${what.columns.title()}`);
  }

  legend() {
    const item = (name, look) => el('span', { class: 'key' }, el('span', { class: `swatch ${look}` }), name);
    const missing = this.info?.missing.filter((v) => v !== null) ?? [];
    const gaps = /[fcMmV]\d|bfloat/.test(this.info?.dtype ?? '');
    byId('legend').replaceChildren(gaps ? item(/[Mm]\d/.test(this.info.dtype) ? 'NaT' : 'NaN', 'gaps') : '',
                                   missing.length ? item(`missing (${missing.map((v) => numberText(v)).join(', ')})`, 'gaps tinted') : '');
  }

  // ---- the pointer

  pointAt(row, column, cell) {
    if (row === null) return;
    this.pointer = [row, column];
    const at = this.index();
    byId('index').textContent = this.placeText(at);
    this.cell = cell;
    byId('value').classList.add('old');
    this.askValue(at);
    this.askProfile();
  }

  /** Indices, and the coordinates there. */
  placeText(at) {
    const known = this.dimensions.map((along, d) => along.known && `${along.name} ${along.text(at[d])}${along.units && ` ${along.units}`}`).filter((word) => word);
    return [`[${at.join(', ')}]`, ...known].join(' · ');
  }

  index() {
    const at = [...view.at];
    if (this.pointer) [at[view.axes[0]], at[view.axes[1]]] = this.pointer;
    return at;
  }

  async readValue(at) {
    this.reading?.abort();
    this.reading = new AbortController();
    try {
      const answer = await json('api/value', { path: view.from, field: view.field, at: at.join(',') }, this.reading.signal);
      const place = byId('value');
      const shown = this.quantity.element(answer.text, answer.missing);
      place.textContent = shown.text;
      place.classList.remove('old');
      const cell = this.cell;
      const means = { mean: 'Mean', min: 'Minimum', max: 'Maximum', nearest: 'Nearest' }[view.with];
      byId('index').textContent = [this.placeText(at), shown.raw, cell && `${means} of ${cell.window.join(' × ')}: ${this.quantity.text(cell.value)}`]
        .filter((word) => word).join(' · ');
    } catch (error) {
      if (!aborted(error)) byId('value').textContent = error.message;
    }
  }

  async readProfile() {
    if (!this.pointer || (view.tab !== 'picture' && view.tab !== 'planes')) return;
    const at = this.index();
    try {
      const line = await this.profiles.read({ path: view.from, field: view.field, axis: view.along, at: at.join(','), width: 320, v: this.info.version });
      if (line) this.profile.show(line, at[view.along], `Along ${line.name} at [${at.join(', ')}]`, this.quantity, this.dimensions[view.along]);
    } catch (error) {
      byId('value').title = error.message;
      this.profile.clear();
    }
  }

  // ---- taking away

  /** What is in view: the part of the slice that the stage shows, the whole line, or the whole slice. */
  taken() {
    const { info } = this;
    const whole = (d) => ({ start: 0, count: info.shape[d], whole: true, one: false });
    const parts = info.shape.map((_, d) => (info.shape.length > 1 && !view.axes.includes(d) && d !== view.composite?.axis
      ? { start: view.at[d], count: 1, whole: false, one: true } : whole(d)));
    const picture = view.tab === 'picture' && this.slice?.layer;
    if (picture) {
      this.slice.visibleRange().forEach(([start, count], k) => {
        const d = view.axes[k];
        if (count > 0 && count < info.shape[d]) parts[d] = { start, count, whole: false, one: false };
      });
    }
    const line = view.tab === 'line' ? this.linePlot?.line : this.profile.line;
    return { name: byId('name').textContent, path: this.openPath(), from: view.from, field: view.field, parts, picture: picture ? () => this.drawn() : null,
             profile: line ? this.profileText(line, this.dimensions[view.tab === 'line' ? 0 : view.along]) : null };
  }

  /** The path as programs take it, in the folder that is served: a member of a file stands behind "::". */
  openPath() {
    return this.info.open_path ?? view.from;
  }

  profileText(line, along) {
    const number = (v) => (v === null || v === undefined ? '' : String(v));
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const head = ['index', ...(along.known ? [along.title()] : []), 'value', ...(line.window > 1 ? ['least', 'most'] : [])];
    const rows = line.values.map((v, k) => [k * line.window, ...(along.known ? [along.text(k * line.window)] : []), number(v),
                                            ...(line.window > 1 ? [number(line.low[k]), number(line.high[k])] : [])]);
    return [head, ...rows].map((row) => row.map((cell) => quoted(String(cell))).join(',') + '\n').join('');
  }

  /** The picture as it stands on the stage, with its frame, on paper. */
  drawn() {
    const place = byId('map');
    const stage = place.parentElement;
    const ratio = Math.max(2, window.devicePixelRatio || 1);
    const canvas = document.createElement('canvas');
    canvas.width = stage.clientWidth * ratio;
    canvas.height = stage.clientHeight * ratio;
    const context = canvas.getContext('2d');
    context.scale(ratio, ratio);
    context.fillStyle = '#ffffff';
    context.fillRect(0, 0, stage.clientWidth, stage.clientHeight);
    const map = { left: place.offsetLeft, top: place.offsetTop, width: place.clientWidth, height: place.clientHeight };
    this.slice.drawOn(context, map);
    drawFrame(context, { ...this.frameWhat(map, this.slice.extent()), ...paper });
    return canvas;
  }

  /** A printer gets the picture or the line as it stands on the screen, in the colours of paper. */
  beforePrint() {
    const picture = view.tab === 'picture' && this.slice?.layer ? this.drawn()
      : view.tab === 'line' && this.linePlot?.line ? this.linePlot.drawn({ ...paper, line: '#d0d4da', accent: theme('accent'), font: theme('sans') }) : null;
    byId('paper').replaceChildren(...(picture ? [picture] : []));
    document.body.classList.toggle('on-paper', picture !== null);
    if (view.tab !== 'table' && view.tab !== 'compare') return;
    // What lays itself out for the size of its stage keeps that size.
    const stage = byId('stage');
    const { clientWidth: width, clientHeight: height } = stage;
    Object.assign(stage.style, { width: `${width}px`, height: `${height}px`, zoom: Math.min(1, paperWidth / width) });
  }

  afterPrint() {
    byId('paper').replaceChildren();
    document.body.classList.remove('on-paper');
    byId('stage').removeAttribute('style');
  }

  // ---- links and looks

  /** The address bar's link. An array is an entry of the browser's history; what is changed about it belongs to that. */
  writeLink() {
    if (view.path === null || this.loading) return;
    const picture = view.tab === 'picture' ? this.slice?.layer : this.pictures;
    const numbers = this.info && this.info.shape.length >= 2;
    const shown = {
      path: view.path,
      field: view.field,
      tab: view.tab,
      axes: numbers ? view.axes : null,
      at: this.info && this.info.shape.length > 2 ? view.at : null,
      with: picture ? view.with : null,
      map: picture && !view.composite ? view.map : null,
      colour: picture && this.composite && !view.composite && !view.axes.includes(this.composite.axis) ? 'off' : null,
      scale: picture ? view.scale : null,
      flip: picture ? view.flip : null,
      range: picture && !view.composite ? view.range : null,
      where: view.tab === 'picture' && this.slice?.layer ? this.slice.where() : view.tab === 'compare' ? this.compare?.where() : null,
      along: picture ? view.along : null,
      other: view.tab === 'compare' ? view.other : null,
    };
    const link = linkOf(shown);
    if (link === this.written) return;
    if (this.written !== undefined && location.hash !== this.written) return;  // Back is under way: its entry is not this one's
    this.written = link;
    const opened = this.entry !== undefined && this.entry !== view.path;
    history[opened ? 'pushState' : 'replaceState'](null, '', link);
    this.entry = view.path;
    this.written = location.hash;
  }

  async copyLink() {
    this.writeLink();
    const button = byId('link');
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'It is in the address bar';
    }
    setTimeout(() => (button.textContent = 'Copy link'), 1600);
  }

  theme(toggle = false) {
    const root = document.documentElement;
    let chosen = null;
    try {
      chosen = localStorage.getItem('tessera-theme');
    } catch {
      // Without storage the system's choice holds.
    }
    if (toggle) {
      const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
      chosen = dark ? 'light' : 'dark';
      try {
        localStorage.setItem('tessera-theme', chosen);
      } catch {
        // It holds until the page is left.
      }
    }
    if (chosen === 'dark' || chosen === 'light') root.dataset.theme = chosen;
    if (toggle) this.redraw();
  }

  /** Draws again what has colours of the theme. */
  redraw() {
    this.histogram.draw();
    this.profile.draw();
    this.frame();
    this.linePlot?.draw();
    this.planes?.draw();
    if (view.tab === 'chunks') this.refresh();
  }
}

window.tesseraPage = new Page();
window.tesseraPage.start();
