// What is shown, as the link of the page says it: #path=…&axes=0,1&at=5,0,0&zoom=-3&centre=100,200&map=viridis…

export const view = {
  path: null,
  from: null,    // the array whose elements are shown: of an image of several levels, the finest
  composite: null,  // of pictures of several channels
  field: null,   // of structures
  axes: [0, 1],
  at: [],
  with: 'mean',
  map: 'viridis',
  scale: 'linear',
  flip: null,    // [rows, columns]; null for as the coordinates have it
  range: null,   // [low, high]; null until it is chosen from the numbers
  where: null,   // {zoom, centre}; null for all of the slice
  tab: null,
  along: null,   // the axis of the profile
  other: null,   // the array that is compared with this one
};

const words = {
  with: ['mean', 'min', 'max', 'nearest'],
  scale: ['linear', 'log', 'symlog', 'root', 'square'],
  tab: ['members', 'picture', 'planes', 'compare', 'line', 'table', 'chunks', 'details'],
  colour: ['off'],
};

const whole = (text) => text.split(',').map((n) => (/^\d{1,15}$/.test(n) ? Number(n) : NaN));
const decimal = (text) => text.split(',').map((n) => (n === '' ? NaN : Number(n)));
const pair = (list) => list.length === 2 && list.every(Number.isFinite);

/** The wishes of a link; those that make no sense are left out. */
export function parseLink(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  const wishes = {};
  if (given.has('path')) wishes.path = given.get('path');
  if (given.get('other')) wishes.other = given.get('other');
  if (given.has('field')) wishes.field = given.get('field');
  for (const [name, allowed] of Object.entries(words)) {
    if (allowed.includes(given.get(name))) wishes[name] = given.get(name);
  }
  if (/^[a-z]{1,20}(_r)?$/.test(given.get('map') ?? '')) wishes.map = given.get('map');
  const flip = /^([01]),([01])$/.exec(given.get('flip') ?? '');
  if (flip) wishes.flip = [flip[1] === '1', flip[2] === '1'];
  const axes = whole(given.get('axes') ?? '');
  if (pair(axes) && axes[0] !== axes[1]) wishes.axes = axes;
  const at = whole(given.get('at') ?? '');
  if (at.every(Number.isFinite)) wishes.at = at;
  const range = decimal(given.get('range') ?? '');
  if (pair(range)) wishes.range = range;
  const centre = decimal(given.get('centre') ?? '');
  const zoom = Number(given.get('zoom') || NaN);
  if (pair(centre) && Math.abs(zoom) <= 40) wishes.where = { zoom, centre };
  const along = whole(given.get('along') ?? '');
  if (along.length === 1 && Number.isFinite(along[0])) wishes.along = along[0];
  return wishes;
}

export function linkOf(shown) {
  const parts = [['path', shown.path]];
  const add = (name, value) => value !== null && value !== undefined && value !== '' && parts.push([name, value]);
  add('field', shown.field);
  add('tab', shown.tab);
  add('axes', shown.axes?.join(','));
  add('at', shown.at?.join(','));
  add('with', shown.with);
  add('map', shown.map);
  add('colour', shown.colour);
  add('scale', shown.scale === 'linear' ? null : shown.scale);
  add('flip', shown.flip?.map(Number).join(','));
  add('range', shown.range?.join(','));  // all digits: a range may be narrow and far from 0
  add('zoom', shown.where && Math.round(shown.where.zoom * 1e6) / 1e6);
  add('centre', shown.where?.centre.map((v) => Math.round(v * 100) / 100).join(','));
  add('along', shown.along);
  add('other', shown.other);
  return '#' + parts.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll('%2F', '/').replaceAll('%2C', ',')}`).join('&');
}
