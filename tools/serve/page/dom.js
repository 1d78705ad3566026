// Elements, made without any HTML: names and attributes of arrays are text, whatever they hold.

/** el('button', {type: 'button', class: 'x', onclick: f}, 'text', child, …) */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) {
      element.addEventListener(key.slice(2), value);
    } else if (key === 'value' || key === 'checked') {
      element[key] = value;
    } else {
      element.setAttribute(key, value === true ? '' : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A canvas as sharp as the screen, drawn in CSS pixels; width and height of its element. */
export function sharpen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** A colour of the page, as the style sheet has it. */
export function theme(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Calls `work` in the frame after an element's size changed, because it may change sizes that are being reported. */
export function onResize(element, work) {
  new ResizeObserver(() => requestAnimationFrame(() => work())).observe(element);
}

// Work that is asked for again and again, done once before the next picture of the screen.
export function onceAFrame(work) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      work();
    });
  };
}

/** Calls `work` once things have been quiet for a while; cancel() forgets it. */
export function settled(work, milliseconds) {
  let timer = 0;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

export function bytesText(n) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let k = 0;
  while (n >= 1024 && k < units.length - 1) {
    n /= 1024;
    ++k;
  }
  return `${k === 0 ? n : n.toFixed(n < 10 ? 1 : 0)} ${units[k]}`;
}

export const shapeText = (shape) => (shape.length === 0 ? 'one element' : shape.map((n) => n.toLocaleString('en')).join(' × '));

const kinds = { b: 'bool', i: 'int', u: 'uint', f: 'float', c: 'complex', M: 'datetime64', m: 'timedelta64', S: 'bytes', U: 'text' };

/** NumPy's notation of a dtype in words: int16, float32 big-endian, datetime64[s]. */
export function typeText(dtype) {
  const parts = /^([<>|=]?)([biufcMmSU])(\d+)(\[.*\])?$/.exec(dtype);
  if (!parts) return dtype;
  const [, order, kind, size, unit] = parts;
  const name = kind === 'b' ? 'bool' : 'Mm'.includes(kind) ? kinds[kind] + (unit ?? '')
               : 'SU'.includes(kind) ? `${kinds[kind]} of ${size}` : `${kinds[kind]}${8 * size}`;
  return order === '>' ? `${name} big-endian` : name;
}

/** A length in few letters: 20k, 1M. */
export function shortLength(n) {
  if (n >= 1e6 && n % 1e5 === 0) return `${n / 1e6}M`;
  return n >= 1e4 && n % 100 === 0 ? `${n / 1e3}k` : String(n);
}
