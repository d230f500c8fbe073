// Requests to our own server, with the session's CSRF token.

const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";
const server = document.body.dataset.server ?? ""; // of a preview, which has paths of its own

export class Refusal extends Error {
  constructor(status, { error = "", message = "", case: why = "" }) {
    super(message);
    this.status = status;
    this.code = error;
    this.case = why || error;
  }
}

// Send JSON or a form; resolves to the parsed answer. Throws Refusal when the server refuses,
// and another error when it could not be reached.
export async function send(path, body, { method = "POST", seconds = 15, keepalive = false, signal = null } = {}) {
  const headers = { "x-csrf-token": csrf, accept: "application/json" };
  if (method === "GET") {
    body = undefined;
  } else if (!(body instanceof FormData)) {
    headers["content-type"] = "application/json";
    body = JSON.stringify(body ?? {});
  }
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), seconds * 1000);
  signal?.addEventListener("abort", () => stop.abort());
  try {
    const response = await fetch(server + path, {
      method, headers, body, keepalive, signal: stop.signal, credentials: "same-origin",
    });
    const found = await response.json().catch(() => ({}));
    if (!response.ok) throw new Refusal(response.status, found);
    return found;
  } finally {
    clearTimeout(timer);
  }
}

// An idempotency key; works without https as well.
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
