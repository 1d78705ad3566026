// The picture: a slice as tiles of Leaflet. A unit of the map is an element; a short axis is stretched by a power of
// two, so that an array of 10⁶ × 3 is more than a line. Tiles are asked for at whole zooms, where an element is 2^zoom
// pixels, or a pixel is 2^-zoom elements; between these they are drawn larger or smaller.

/* global L */
import { address, aborted, numbers } from './api.js';
import { Blend } from './channels.js';
import { Painter, percentiles } from './colour.js';
import { TileStore } from './tiles.js';

const side = 256;
const flattest = 6;  // longer slices are stretched
const grain = 16;  // the sides of drawn tiles are multiples of this many pixels, so that no seams show between them
const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;

/** How far each axis is stretched, as powers of two: [rows, columns]. */
export function stretch(rows, columns) {
  const extra = (long, short) => (long > flattest * short ? Math.max(0, Math.floor(Math.log2(long / (3 * short)))) : 0);
  return [extra(columns, rows), extra(rows, columns)];
}

/** How much taller a row is than a column is wide, in steps that leave no seams: by what lies between neighbours along each. */
export function aspectOf(info, axes) {
  const [down, across] = axes.map((d) => info.dimensions?.[d]);
  const alike = (one, other) => one.units === other.units || (/^degree/.test(one.units) && /^degree/.test(other.units));
  const ratio = down?.step && across?.step && alike(down, across) ? down.step / across.step : 1;
  if (!(ratio > 0.2 && ratio < 5)) return 1;  // an element would be hardly seen
  return Math.max(1, Math.round((side / grain) * ratio)) * (grain / side);
}

/** What of the server's tiles a tile of the map shows along one axis, where an element is 2^power pixels. */
export function part(tile, power) {
  if (power <= 0) return { level: -power, tile, first: 0, count: side };
  const size = 2 ** power;
  const first = Math.floor((tile * side) / size);
  return { level: 0, tile: Math.floor(first / side), first: first % side, count: Math.max(1, side / size) };
}

/** The zoom nearest to `zoom` (with `most`, below it) at which a tile's side is a multiple of the grain. */
export function seamless(zoom, most = false) {
  const whole = Math.round(zoom);
  const size = (side / grain) * 2 ** (zoom - whole);
  return whole + Math.log2((Math.max(1, most ? Math.floor(size + 1e-9) : Math.round(size)) * grain) / side);
}

const SliceMap = L.Map.extend({
  _limitZoom(zoom) {
    return Math.max(this.getMinZoom(), Math.min(this.getMaxZoom(), seamless(zoom)));
  },
});

const SliceLayer = L.GridLayer.extend({
  initialize(owner, options) {
    L.GridLayer.prototype.initialize.call(this, options);
    this.owner = owner;
    this.on('tileunload', ({ tile }) => tile.forget?.());
  },

  createTile(coords, done) {
    const canvas = document.createElement('canvas');
    canvas.className = 'tile';
    canvas.width = canvas.height = 1;
    canvas.coords = { ...coords };
    this.owner.fill(canvas, done);
    return canvas;
  },

  /** As Leaflet's, but without rounding: tiles begin and end at whole pixels as their sides are whole. */
  _setZoomTransform(level, center, zoom) {
    const scale = this._map.getZoomScale(zoom, level.zoom);
    L.DomUtil.setTransform(level.el, level.origin.multiplyBy(scale).subtract(this._map._getNewPixelOrigin(center, zoom)), scale);
  },

  each(action) {
    for (const key of Object.keys(this._tiles)) action(this._tiles[key].el);
  },
});

export class SliceView {
  /** `events`: pointer(row, column), moved(), numbers(), status(text), failed(error). */
  constructor(element, events) {
    this.element = element;
    this.events = events;
    this.store = new TileStore();
    this.map = new SliceMap(element, {
      crs: this.crs(1, [false, false]),
      attributionControl: false,
      zoomControl: false,
      fadeAnimation: false,
      zoomAnimation: !calm,
      inertia: !calm,
      zoomSnap: 0,
      doubleClickZoom: 'center',
      keyboardPanDelta: 96,
      maxBoundsViscosity: 0.6,
      minZoom: -40,
      maxZoom: 12,
    });
    this.map.createPane('preview').style.zIndex = 150;  // below the tiles
    this.map.setView([0, 0], 0);
    L.control.zoom({ position: 'bottomright' }).addTo(this.map);
    const Fit = L.Control.extend({
      onAdd: () => {
        const button = L.DomUtil.create('a', 'fit');
        Object.assign(button, { href: '#', title: 'Whole picture (0)', role: 'button', ariaLabel: 'Whole picture', textContent: '⤢' });
        L.DomEvent.disableClickPropagation(button);
        button.addEventListener('click', (event) => {
          event.preventDefault();
          this.fitPicture();
        });
        const bar = L.DomUtil.create('div', 'leaflet-bar');
        bar.append(button);
        return bar;
      },
    });
    new Fit({ position: 'bottomright' }).addTo(this.map);
    // In the corner of the stage, where they hide nothing.
    element.parentElement.append(element.querySelector('.leaflet-control-container'));
    this.gaps = document.createElement('div');  // shines through where elements are missing
    this.gaps.className = 'gaps';
    element.prepend(this.gaps);
    this.map.on('move zoom zoomend resize viewreset', () => this.framed());
    this.map.on('mousemove click', (event) => this.point(event.latlng, false));
    this.map.on('moveend', () => this.movedEnd());
    element.addEventListener('keydown', (event) => this.key(event), { capture: true });
    element.addEventListener('pointerdown', () => (this.byKeys = false));
    element.addEventListener('pointermove', () => (this.byKeys = false));
    new ResizeObserver(() => this.map.invalidateSize({ animate: false })).observe(element);
  }

  /** Leaflet zooms three levels with Shift, but on many keyboards there is no + without it. */
  key(event) {
    this.byKeys = true;
    if (event.key === '0' && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      this.fitPicture();
      return;
    }
    const by = { '+': 1, '=': 1, '-': -1, _: -1 }[event.key];
    if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.map.setZoom(this.map.getZoom() + by);
  }

  /** Shows a slice of an array. `where`: {zoom, centre: [row, column]} or null for all of it. */
  async show(info, quantity, view, where) {
    this.hide();
    this.info = info;
    this.view = view;
    this.quantity = quantity;
    this.decode = (values) => quantity.decode(values);
    this.painter = this.blend = null;
    this.composite = view.composite;
    this.rows = info.shape[view.axes[0]];
    this.columns = info.shape[view.axes[1]];
    this.powers = stretch(this.rows, this.columns);
    this.flipped = view.flipped ?? [false, false];
    this.aspect = this.powers[0] + this.powers[1] > 0 ? 1 : aspectOf(info, view.axes);
    this.map.options.crs = this.crs(this.aspect, this.flipped);
    this.store.clear();
    this.needsRange = view.range === null && !this.composite;
    this.map.invalidateSize({ animate: false });
    const corner = this.unit(this.rows, this.columns);
    const bounds = L.latLngBounds([0, 0], corner);
    this.bounds = bounds;
    this.map.setMaxBounds(null);
    const fit = this.fitZoom();
    // Not by setMinZoom(), which moves what was shown before into the new limits: that goes on after setView(), as any
    // zoom under way does.
    this.map._onZoomTransitionEnd();
    Object.assign(this.map.options, { minZoom: Math.min(Math.floor(fit), 0) - 1, maxZoom: Math.max(6, Math.ceil(fit)) });
    this.map.setView(where ? this.unit(...where.centre) : bounds.getCenter(), where?.zoom ?? fit, { reset: true });
    this.map.fire('zoomlevelschange');
    this.map.setMaxBounds(bounds.pad(0.5));
    const generation = (this.generation = {});
    this.framed();
    await this.preview(generation);
    if (this.generation !== generation) return;
    this.layer = new SliceLayer(this, { tileSize: new L.Point(side, side * this.aspect), bounds, noWrap: true, keepBuffer: 1, minZoom: -40, maxZoom: 12,
                                        updateWhenZooming: false, updateWhenIdle: false, updateInterval: 80 });
    this.layer.on('loading', () => this.report());
    this.layer.on('load', () => this.loaded());
    this.layer.addTo(this.map);
  }

  hide() {
    this.generation = null;
    this.previewing?.abort();
    this.layer?.remove();
    this.overlay?.remove();
    this.layer = this.overlay = this.glance = null;
    Object.assign(this.gaps.style, { width: 0, height: 0 });
  }

  fitZoom() {
    const size = this.map.getSize();
    const corner = this.unit(this.rows, this.columns);
    const fits = Math.min(size.x / corner[1], size.y / (corner[0] * this.aspect));
    return Math.max(-40, Math.min(9, seamless(Math.log2(Math.max(fits, 1e-12)), true)));
  }

  /** Shows all of the slice, as at first. */
  fitPicture() {
    if (this.info) this.map.setView(this.bounds.getCenter(), this.fitZoom());
  }

  /** How indices become pixels: rows are `aspect` times as tall as columns are wide; a flipped axis ends where it began. */
  crs(aspect, flipped) {
    return L.Util.extend({}, L.CRS.Simple, { transformation: new L.Transformation(flipped[1] ? -1 : 1, 0, flipped[0] ? -aspect : aspect, 0) });
  }

  /** The zoom of the tiles. */
  tileZoom() {
    return this.layer?._tileZoom ?? Math.round(this.map.getZoom());
  }

  /** Where the slice lies in the map, in pixels: {left, top, right, bottom}, beyond the map where it is larger. */
  extent() {
    const one = this.map.latLngToContainerPoint([0, 0]);
    const other = this.map.latLngToContainerPoint(this.unit(this.rows, this.columns));
    return { left: Math.min(one.x, other.x), right: Math.max(one.x, other.x), top: Math.min(one.y, other.y), bottom: Math.max(one.y, other.y) };
  }

  framed() {
    if (!this.info || !this.generation) return;
    const { left, top, right, bottom } = this.extent();
    const size = this.map.getSize();
    const [x, y] = [Math.max(0, left), Math.max(0, top)];
    Object.assign(this.gaps.style, { left: `${x}px`, top: `${y}px`, width: `${Math.max(0, Math.min(size.x, right) - x)}px`,
                                     height: `${Math.max(0, Math.min(size.y, bottom) - y)}px` });
    // Elements that are smaller than pixels are averaged by the browser, larger ones have sharp borders.
    this.element.classList.toggle('sharp', this.map.getZoom() >= 1);
    this.events.framed?.();
  }

  /** Where an index lies on the map: [lat, lng], downwards and to the right. */
  unit(row, column) {
    return [row * 2 ** this.powers[0], column * 2 ** this.powers[1]];
  }

  /** The slice's other indices, or what a cell shows, have changed: the old picture stays until the new one is there. */
  update() {
    if (!this.layer) return Promise.resolve();
    this.overlay?.remove();
    this.overlay = this.glance = null;
    const waits = [];
    this.layer.each((canvas) => {
      canvas.forget?.();
      waits.push(new Promise((resolve) => this.fill(canvas, resolve)));
    });
    this.report(waits.length);
    return Promise.all(waits).then(() => this.loaded());
  }

  newPainter() {
    const { map, scale, range } = this.view;  // which may inherit them
    return new Painter({ map, scale, range: range ?? [0, 1] }, this.quantity.missing);
  }

  repaint() {
    if (!this.info) return;
    this.blend = null;
    if (this.composite) this.layer?.each((canvas) => canvas.draw?.());
    if (this.composite || this.view.range === null) return;
    this.painter = this.newPainter();
    this.paintPreview();
    this.layer?.each((canvas) => canvas.draw?.());
  }

  /** Of a request for this slice; `channel` in place of the index along the axis of channels, or the array to subtract. */
  parameters(channel = null) {
    if (channel?.version) return { path: channel.from, field: channel.field, axes: this.view.axes.join(','), at: this.view.at.join(','), v: channel.version };
    const at = channel === null ? this.view.at : this.view.at.with(this.composite.axis, channel.index);
    return { path: this.view.from, field: this.view.field, axes: this.view.axes.join(','), at: at.join(',') };
  }

  // ---- the preview

  async preview(generation) {
    if (this.composite || this.view.minus) return;
    this.previewing = new AbortController();
    this.events.status('Looking…');
    this.element.dataset.state = 'preview';
    try {
      const glance = await numbers(address('api/preview', { ...this.parameters(), v: this.info.version }), this.previewing.signal, this.decode);
      if (this.generation !== generation) return;
      if (glance.node !== this.info.node) this.events.changed();
      this.glance = glance;
      if (this.needsRange) this.chooseRange([glance]);
      this.overlay = L.imageOverlay(this.previewImage(), this.bounds, { className: 'preview', interactive: false, pane: 'preview' });
      this.overlay.addTo(this.map);
      this.events.numbers();
    } catch (error) {
      if (!aborted(error)) this.events.failed(error);
    }
  }

  /** A cell of the preview stands for `window` elements; the last row and column for what is left. */
  previewImage() {
    const { glance } = this;
    const canvas = document.createElement('canvas');
    canvas.height = Math.min(512, this.rows);
    canvas.width = Math.min(512, this.columns);
    const image = new ImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    this.painter ??= this.newPainter();
    for (let y = 0; y < canvas.height; ++y) {
      const from = this.flipped[0] ? canvas.height - 1 - y : y;
      const row = Math.floor(Math.floor(((from + 0.5) * this.rows) / canvas.height) / glance.window[0]);
      for (let x = 0; x < canvas.width; ++x) {
        const at = this.flipped[1] ? canvas.width - 1 - x : x;
        const column = Math.floor(Math.floor(((at + 0.5) * this.columns) / canvas.width) / glance.window[1]);
        pixels[y * canvas.width + x] = this.painter.pixel(glance.values[row * glance.columns + column]);
      }
    }
    canvas.getContext('2d').putImageData(image, 0, 0);
    return canvas.toDataURL();
  }

  paintPreview() {
    if (this.overlay && this.glance) this.overlay.setUrl(this.previewImage());
  }

  // ---- tiles

  plan(coords) {
    const row = part(this.flipped[0] ? -1 - coords.y : coords.y, coords.z + this.powers[0]);
    const column = part(this.flipped[1] ? -1 - coords.x : coords.x, coords.z + this.powers[1]);
    return { row, column };
  }

  /** The stored level of a pyramid that a tile is read from: the coarsest that is fine enough. */
  source(row, column) {
    const need = Math.min(row.level, column.level);
    let best = null;
    for (const level of this.info.levels ?? []) {
      if (level.power <= need && level.power > (best?.power ?? 0)) best = level;
    }
    return best ?? { path: this.view.from, power: 0 };
  }

  fill(canvas, done) {
    const { row, column } = this.plan(canvas.coords);
    const source = this.source(row, column);
    const levels = [row.level - source.power, column.level - source.power];
    const { minus } = this.view;
    const channels = this.composite ? this.composite.channels.filter(({ on }) => on) : minus ? [null, minus] : [null];
    const parts = channels.map(() => null);
    let shown = false;
    const take = (data, k) => {
      if (data.node !== (channels[k]?.version ? minus.node : this.info.node) && source.power === 0) {
        this.events.changed();  // its numbers do not belong to the range and the shape that are shown
        return;
      }
      const better = shown && done === null;
      parts[k] = data;
      if (parts.includes(null)) return;
      canvas.parts = parts;
      canvas.data = { ...parts[0], left: parts.reduce((sum, part) => sum + part.left, 0) };
      if (minus) canvas.data.values = this.difference(parts, minus);
      shown = true;
      canvas.draw();
      done?.(null, canvas);
      done = null;
      if (canvas.data.left > 0) this.report();
      else if (better) this.loaded();
    };
    const ends = channels.map((channel, k) => this.store.want(
      { path: source.path, v: this.info.version, ...this.parameters(channel), ...(channel?.version ? {} : { path: source.path }),
        level: levels.join(','), tile: `${row.tile},${column.tile}`, with: levels[0] + levels[1] > 0 ? this.view.with : 'nearest' },
      (data) => take(data, k),
      (error) => {
        done?.(error, canvas);
        done = null;
        this.events.failed(error);
      },
      channel?.version ? (values) => minus.quantity.decode(values) : this.decode));
    canvas.draw = () => {
      if (!canvas.data) return;
      if (this.composite) {
        this.blend ??= new Blend(this.composite);
        if (canvas.parts.length === this.blend.channels.length) this.blend.paint(canvas, canvas.parts, row, column, this.flipped);
        return;
      }
      if (this.view.range === null) this.chooseRange([canvas.data]);
      this.painter ??= this.newPainter();
      this.painter.paint(canvas, canvas.data, row, column, this.flipped);
    };
    canvas.forget = () => {
      ends.forEach((end) => end());
      done = null;
    };
    if (channels.length === 0) {  // all are off
      canvas.data = { values: [], rows: 0, columns: 0, left: 0 };
      canvas.parts = [];
      queueMicrotask(() => done?.(null, canvas));
    }
    if (canvas.data) canvas.draw();
  }

  /** The first of two tiles minus the second; NaN where either is missing. */
  difference([one, other], minus) {
    const gone = [this.quantity.missing, minus.quantity.missing];
    return Float64Array.from(one.values, (v, k) => (gone[0].includes(v) || gone[1].includes(other.values[k]) ? NaN : v - other.values[k]));
  }

  /** All numbers that are in view. */
  visible() {
    const found = new Set();
    this.layer?.each((canvas) => {
      if (canvas.data && canvas.coords.z === this.tileZoom()) found.add(canvas.data);
    });
    return [...found];
  }

  /** Whether all in view is missing. */
  nothing() {
    const seen = this.visible();
    return !this.composite && seen.length > 0 && seen.every(({ values }) => values.every((v) => v !== v || this.quantity.missing.includes(v)));
  }

  chooseRange(sources, low = 2, high = 98) {
    const values = sources.flatMap((source) => Array.from(source.values));
    let range = percentiles(values, this.quantity.missing, low, high);
    if (range && range[0] === range[1]) range = percentiles(values, this.quantity.missing, 0, 100);
    if (this.info.kind === 'bool') range = [0, 1];
    if (this.info.phase) range = [-Math.PI, Math.PI];
    if (!range) return false;
    if (this.view.map.startsWith('diverging')) {
      const most = Math.max(Math.abs(range[0]), Math.abs(range[1]));
      range = [-most, most];
    }
    if (this.composite) return false;
    this.view.range = range;
    this.painter = null;
    return true;
  }

  /** Takes the range of what is in view, between two percentiles. */
  fitRange(low, high) {
    if (this.chooseRange(this.visible(), low, high)) {
      this.repaint();
      this.events.numbers();
    }
  }

  loaded() {
    if (!this.layer) return;
    if (this.needsRange && this.visible().length > 0) {
      this.needsRange = false;
      if (this.chooseRange(this.visible())) this.repaint();
    }
    if (this.composite) this.chooseChannels();
    this.report();
    this.events.numbers();
  }

  /** Channels without a contrast take that of what is in view. */
  chooseChannels() {
    const channels = this.composite.channels.filter(({ on }) => on);
    let chosen = false;
    channels.forEach((channel, k) => {
      if (channel.range) return;
      const parts = [];
      this.layer.each((canvas) => canvas.parts?.[k] && parts.push(canvas.parts[k]));
      const range = percentiles(parts.flatMap((part) => Array.from(part.values)), this.quantity.missing, 1, 99.7);
      if (!range) return;
      channel.range = range[0] < range[1] ? range : [range[0], range[0] + 1];
      chosen = true;
    });
    if (chosen) this.repaint();
  }

  report() {
    if (!this.layer) return;
    let left = 0;
    let loading = this.layer.isLoading();
    const seen = new Set();
    this.layer?.each((canvas) => {
      if (!canvas.data) loading = true;
      if (!canvas.data || seen.has(canvas.data) || canvas.coords.z !== this.tileZoom()) return;
      seen.add(canvas.data);
      left += canvas.data.left;
    });
    const { row, column } = this.plan({ x: 0, y: 0, z: this.tileZoom() });
    const words = [row.level + column.level > 0 ? `a cell is ${2 ** row.level} × ${2 ** column.level} elements` : '',
                   this.nothing() ? 'only missing elements here' : '',
                   left > 0 ? `sampled, ${left.toLocaleString('en')} chunks not read yet` : '', loading ? 'loading…' : ''];
    this.events.status(words.filter((word) => word).join(' · '));
    this.element.dataset.state = loading ? 'loading' : left > 0 ? 'sampled' : 'complete';
    if (this.element.dataset.state === 'complete' && this.overlay) {
      this.overlay.remove();  // it would shine through where elements are missing
      this.overlay = null;
    }
  }

  // ---- the pointer

  point(latlng) {
    if (!this.layer && !this.glance) return;
    const row = Math.floor(latlng.lat / 2 ** this.powers[0]);
    const column = Math.floor(latlng.lng / 2 ** this.powers[1]);
    const inside = row >= 0 && column >= 0 && row < this.rows && column < this.columns;
    this.events.pointer(inside ? row : null, column, this.cellAt(row, column));
  }

  /** The number that is drawn at an index, if it stands for more than that element. */
  cellAt(row, column) {
    const zoom = this.tileZoom();
    const plan = this.plan({ x: 0, y: 0, z: zoom });
    if (plan.row.level + plan.column.level === 0) return null;
    let found = null;
    const i = Math.floor(row / 2 ** plan.row.level);
    const j = Math.floor(column / 2 ** plan.column.level);
    this.layer?.each((canvas) => {
      const own = this.plan(canvas.coords);
      if (canvas.coords.z !== zoom || !canvas.data) return;
      if (own.row.tile !== Math.floor(i / side) || own.column.tile !== Math.floor(j / side)) return;
      found = { value: canvas.data.values[(i % side) * canvas.data.columns + (j % side)],
                window: [2 ** plan.row.level, 2 ** plan.column.level] };
    });
    return found;
  }

  movedEnd() {
    if (!this.info) return;
    this.events.moved();
    if (this.byKeys) this.point(this.map.getCenter());
    this.events.keyed(this.byKeys === true);
  }

  /** The elements in view along rows and columns: [[start, count], [start, count]]. */
  visibleRange() {
    const size = this.map.getSize();
    const corners = [[0, 0], [size.x, size.y]].map((point) => this.map.containerPointToLatLng(point));
    const range = (one, other, power, length) => {
      const ends = [one / 2 ** power, other / 2 ** power].sort((a, b) => a - b);
      const first = Math.max(0, Math.floor(ends[0] + 1e-6));
      return [first, Math.max(0, Math.min(length, Math.ceil(ends[1] - 1e-6)) - first)];
    };
    return [range(corners[0].lat, corners[1].lat, this.powers[0], this.rows), range(corners[0].lng, corners[1].lng, this.powers[1], this.columns)];
  }

  /** Draws what the map shows, on a context whose map lies at `map`. */
  drawOn(context, map) {
    const origin = this.element.getBoundingClientRect();
    const extent = this.extent();
    context.save();
    context.beginPath();
    context.rect(map.left + Math.max(0, extent.left), map.top + Math.max(0, extent.top),
                 Math.min(map.width, extent.right) - Math.max(0, extent.left), Math.min(map.height, extent.bottom) - Math.max(0, extent.top));
    context.clip();
    context.strokeStyle = '#c9c9c2';
    for (let x = map.left - map.height; x < map.left + map.width; x += 8) {
      context.beginPath();
      context.moveTo(x, map.top + map.height);
      context.lineTo(x + map.height, map.top);
      context.stroke();
    }
    context.imageSmoothingEnabled = !this.element.classList.contains('sharp');
    this.layer?.each((canvas) => {
      if (!canvas.data || canvas.coords.z !== this.tileZoom()) return;
      const box = canvas.getBoundingClientRect();
      context.drawImage(canvas, box.left - origin.left + map.left, box.top - origin.top + map.top, box.width, box.height);
    });
    context.restore();
  }

  where() {
    const centre = this.map.getCenter();
    return { zoom: this.map.getZoom(), centre: [centre.lat / 2 ** this.powers[0], centre.lng / 2 ** this.powers[1]] };
  }
}
