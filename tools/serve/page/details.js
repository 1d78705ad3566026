// Metadata and attributes, as text.

import { json } from './api.js';
import { bytesText, el, shapeText, typeText } from './dom.js';

function valueText(value) {
  if (typeof value === 'string') return value;
  return JSON.stringify(value, null, value !== null && typeof value === 'object' ? 1 : 0);
}

function rows(pairs) {
  return el('dl', { class: 'pairs' }, ...pairs.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
}

function codecText(codec) {
  const settings = Object.entries(codec.configuration ?? {}).map(([name, value]) => `${name} ${valueText(value)}`);
  return settings.length ? `${codec.name} (${settings.join(', ')})` : codec.name;
}

export function details(info) {
  const pairs = [['Kind', info.format ? `${info.kind}, ${info.format}` : info.kind]];
  if (info.shape) {
    pairs.push(['Shape', shapeText(info.shape)], ['Elements', typeText(info.dtype)]);
    if (info.dimension_names) pairs.push(['Dimensions', info.dimension_names.map((name) => name ?? '–').join(', ')]);
    pairs.push(['In memory', bytesText(info.logical_bytes)]);
  }
  if (info.chunks) pairs.push(['Chunks', shapeText(info.chunks)]);
  if (info.shards) pairs.push(['Shards', shapeText(info.shards)]);
  if (info.chunks_stored !== undefined) {
    const size = info.stored_bytes ?? info.stored_bytes_about;
    const inner = info.chunks_stored !== null || !info.shards;
    const [stored, possible, unit] = inner
      ? [info.chunks_stored, info.chunks_possible, 'chunks'] : [info.shards_stored, info.shards_possible, 'shards'];
    const about = info.stored_bytes_about === undefined ? '' : 'about ';
    pairs.push(['Stored', `${stored.toLocaleString('en')} of ${possible.toLocaleString('en')} ${unit}, ${about}${bytesText(size)}`]);
  }
  if (info.codecs) pairs.push(['Codecs', info.codecs.map(codecText).join(' → ')]);
  if (info.fill_value !== undefined) pairs.push(['Fill value', valueText(info.fill_value)]);
  if (info.file_bytes !== undefined) pairs.push(['File', bytesText(info.file_bytes)]);
  if (info.children !== undefined) pairs.push(['Holds', `${info.children.toLocaleString('en')} nodes`]);
  const attributes = Object.entries(info.attributes ?? {});
  const zarr = info.shape ? [['Zarr v2', info.why_not_v2 ?? `v2/${info.path}`], ['Zarr v3', info.why_not_v3 ?? `v3/${info.path}`]] : [];
  const base = new URL('.', location.href).href;
  return [
    el('h2', {}, 'Metadata'), rows(pairs),
    el('h2', {}, 'Attributes'),
    attributes.length ? rows(attributes.map(([name, value]) => [name, el('span', { class: 'json' }, valueText(value))]))
                      : el('p', { class: 'sub' }, 'None.'),
    ...(zarr.length ? [el('h2', {}, 'For other programs'),
                       rows(zarr.map(([name, value]) => [name, el('code', {}, value.startsWith(name === 'Zarr v2' ? 'v2/' : 'v3/') ? base + value : value)]))] : []),
  ];
}

export function readDetails(path, signal) {
  return json('api/info', { path, stored: 1 }, signal);
}
