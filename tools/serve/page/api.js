// Requests to the server, relative to the page, so that the token in the page's address goes with them.

const mostTries = 4;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What requests name nodes by whose paths are no text: bytes that are not UTF-8. */
const encodings = new Map();

export function known({ path, encoded }) {
  if (encoded) encodings.set(path, encoded);
}

export function address(route, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const encoded = encodings.get(parameters.path);
  if (encoded) query.delete('path');
  const text = (encoded ? `path=${encoded}&` : '') + query.toString().replaceAll('%2C', ',').replaceAll('%2F', '/');
  return text ? `${route}?${text}` : route;
}

async function get(url, signal) {
  let response;
  for (let tries = 1; ; ++tries) {
    try {
      response = await fetch(url, { signal });
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ApiError(0, 'The server does not answer. It may have been stopped.');
    }
    if (response.status !== 503 || tries === mostTries) break;
    await new Promise((resolve) => setTimeout(resolve, 1000));  // others have the memory now
  }
  if (response.ok) return response;
  let message = `The server answered ${response.status}.`;
  try {
    message = (await response.json()).message ?? message;
  } catch {
    // The answer is not from the program itself.
  }
  throw new ApiError(response.status, message);
}

export async function json(route, parameters = {}, signal = undefined) {
  return (await get(address(route, parameters), signal)).json();
}

const kinds = {
  '|i1': Int8Array, '|u1': Uint8Array, '<i2': Int16Array, '<u2': Uint16Array, '<i4': Int32Array, '<u4': Uint32Array,
  '<f4': Float32Array, '<f8': Float64Array,
};

/** Numbers of two dimensions: {values, rows, columns, left, window, node}. `decode` turns stored numbers into those shown. */
export async function numbers(url, signal, decode = (values) => values) {
  const response = await get(url, signal);
  const bytes = await response.arrayBuffer();
  const header = (name) => response.headers.get(`X-Tessera-${name}`) ?? '';
  const [rows, columns] = header('Shape').split(',').map(Number);
  return {
    values: decode(new kinds[header('Dtype')](bytes)),
    rows,
    columns,
    left: Number(header('Left')),
    node: header('Node'),
    window: header('Window').split(',').map(Number),
  };
}

export function aborted(error) {
  return error.name === 'AbortError';
}
