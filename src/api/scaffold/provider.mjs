#!/usr/bin/env node
// A sandbox provider: EPP/1 on standard input and output, one JSON object a line.
//
// A sandbox is a directory <data>/sandboxes/<id>/ with record.json and root/; a path of the sandbox is
// a path under root/. This is a place to start from and no isolation: commands run as you.
import { spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import process from 'node:process';

const FEATURES = ['sandbox.lifecycle', 'exec.run', 'files.rw'];
const OPERATIONS = ['exec.run', 'files.list', 'files.move', 'files.read', 'files.remove', 'files.stat', 'files.write',
  'sandbox.create', 'sandbox.delete', 'sandbox.get', 'sandbox.list'];
// Methods, or their first word, of the features this provider lacks.
const LACKING = { 'sandbox.set_timeout': 'sandbox.timeout', 'sandbox.pause': 'sandbox.pause', 'sandbox.resume': 'sandbox.pause',
  'exec.start': 'exec.stream', 'files.watch': 'files.watch', 'files.unwatch': 'files.watch', process: 'process.manage',
  pty: 'pty', ports: 'ports.url', session: 'sessions' };
const LINE_LIMIT = 8 * 1024 * 1024;
const BOXES = path.join(fs.realpathSync(process.env.ABX_PROVIDER_DATA_DIR ?? '.'), 'sandboxes');
const running = new Map(); // request id -> the exec.run at work

class Failure extends Error {
  constructor(code, message, data = {}) {
    super(message);
    this.error = { code, message, data };
  }
}

function get(p, key, kind, fallback) {
  const value = p[key] ?? fallback;
  const is = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;
  if (is !== kind) throw new Failure(-32602, `${key} must be of type ${kind}`);
  return value;
}

// The directory of a sandbox and what record.json says. The pattern keeps ids from being paths.
function load(p) {
  const id = get(p, 'sandbox_id', 'string');
  const file = path.join(BOXES, id, 'record.json');
  if (!/^sbx-[0-9a-f]{16}$/.test(id) || !fs.existsSync(file))
    throw new Failure(-32002, `there is no sandbox ${id}`, { sdk_code: 'E2009' });
  return { box: path.join(BOXES, id), ...JSON.parse(fs.readFileSync(file, 'utf8')) };
}

// realpath for a place that need not exist yet: a dangling link is followed too, or it could lead out.
function real(place, depth = 0) {
  const st = fs.lstatSync(place, { throwIfNoEntry: false });
  if (depth > 40) throw Object.assign(new Error(), { code: 'ELOOP' });
  if (st?.isSymbolicLink()) return real(path.resolve(real(path.dirname(place), depth + 1), fs.readlinkSync(place)), depth + 1);
  return st || place === '/' ? fs.realpathSync(place) : path.join(real(path.dirname(place), depth), path.basename(place));
}

// The root of the sandbox and the real place of a path in it; without follow, of a link itself.
function inside(p, key = 'path', follow = true) {
  const root = path.join(load(p).box, 'root');
  const full = path.join(root, get(p, key, 'string')).replace(/\/+$/, '');
  if (full.includes('\0')) throw new Failure(-32602, `${key} has a NUL`);
  const within = (place) => place === root || place.startsWith(root + '/');
  const resolve = () => (follow || full === root ? real(full) : path.join(real(path.dirname(full)), path.basename(full)));
  const place = within(full) ? resolve() : '';
  if (!within(place)) throw new Failure(-32000, `${p[key]} leaves the sandbox`, { sdk_code: 'E4002' });
  return { root, place };
}

// The real place of a path that is a file or not there: opening a FIFO would wait for its other end.
function regular(p) {
  const { place } = inside(p), st = fs.statSync(place, { throwIfNoEntry: false });
  if (st && !st.isFile()) throw new Failure(-32000, `${p.path} is not a regular file`);
  return place;
}

const moment = (date) => date.toISOString().replace(/\.\d+Z$/, 'Z');

function entry(root, place) {
  const st = fs.lstatSync(place);
  return { name: place === root ? '/' : path.basename(place), path: place.slice(root.length) || '/',
    type: st.isDirectory() ? 'dir' : st.isSymbolicLink() ? 'symlink' : 'file', size: st.size, mtime: moment(st.mtime),
    mode: st.mode & 0o7777 };
}

function kill(run) {
  if (run.child?.pid && run.child.exitCode === null && run.child.signalCode === null) process.kill(-run.child.pid, 'SIGKILL');
}

// Runs argv without a shell. Output goes to files, so that a background child can't hold up the answer.
async function execRun(p, run) {
  const { envs } = load(p);
  const { root, place: cwd } = inside({ ...p, cwd: p.cwd || '/' }, 'cwd');
  if (!fs.statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    throw new Failure(-32002, `there is no directory ${p.cwd}`, { sdk_code: 'E4001' });
  const cmd = get(p, 'cmd', 'string'), args = get(p, 'args', 'array', []), timeout = get(p, 'timeout', 'number', 0);
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: root, ...envs, ...get(p, 'env', 'object', {}) };
  const names = ['out', 'err'].map((n) => path.join(BOXES, `.${n}-${crypto.randomUUID()}`));
  const fds = names.map((n) => fs.openSync(n, 'wx+', 0o600));
  names.forEach((n) => fs.unlinkSync(n));
  let timer, late = false;
  try {
    const code = await new Promise((resolve, reject) => {
      run.child = spawn(cmd, args, { cwd, env, detached: true, stdio: ['ignore', ...fds] });
      run.child.on('error', (e) => (['ENOENT', 'EACCES', 'ENOTDIR', 'ENOEXEC'].includes(e.code) ? resolve(e) : reject(e)));
      run.child.on('exit', (status, signal) => resolve(status ?? 128 + constants.signals[signal]));
      if (timeout > 0) timer = setTimeout(() => { late = true; kill(run); }, Math.min(timeout * 1000, 2 ** 31 - 1));
    });
    // What a shell says of a command that is missing, or is no program.
    const found = cmd.includes('/') || env.PATH.split(':').some((dir) => fs.existsSync(path.join(dir, cmd)));
    if (code.code === 'ENOENT' || (code instanceof Error && !found)) return { stdout: '', stderr: `${cmd}: not found\n`, exit_code: 127 };
    if (code instanceof Error) return { stdout: '', stderr: `${cmd}: can't be executed (${code.code})\n`, exit_code: 126 };
    if (late) throw new Failure(-32000, `the command ran longer than ${timeout} s`, { sdk_code: 'E3001' });
    const [stdout, stderr] = fds.map((fd) => readAt(fd, 0, LINE_LIMIT).toString('utf8'));
    return { stdout, stderr, exit_code: code };
  } finally {
    clearTimeout(timer);
    fds.forEach((fd) => fs.closeSync(fd));
  }
}

function readAt(fd, offset, length) {
  const data = Buffer.alloc(Math.max(0, Math.min(length, fs.fstatSync(fd).size - offset)));
  let n = 0;
  for (let got = 1; n < data.length && got > 0; n += got) got = fs.readSync(fd, data, n, data.length - n, offset + n);
  return data.subarray(0, n);
}

const METHODS = {
  initialize: (p) => ({ protocol: 'epp/1', plugin: { name: get(p, 'provider_id', 'string', 'provider'), version: '0.1.0' },
    features: FEATURES, operation_contract_version: 1, operations: { cli: [], python: OPERATIONS }, workflow_inputs: [],
    startup_modes: [] }),
  shutdown: () => ({}),
  'sandbox.create': (p) => {
    const record = { sandbox_id: 'sbx-' + crypto.randomBytes(8).toString('hex'), template: get(p, 'template', 'string', ''),
      status: 'running', metadata: get(p, 'metadata', 'object', {}), created_at: moment(new Date()) };
    const text = JSON.stringify({ record, envs: get(p, 'envs', 'object', {}) });
    fs.mkdirSync(path.join(BOXES, record.sandbox_id, 'root'), { recursive: true });
    fs.writeFileSync(path.join(BOXES, record.sandbox_id, 'record.json'), text);
    return record;
  },
  'sandbox.get': (p) => load(p).record,
  'sandbox.list': (p) => {
    const limit = get(p, 'limit', 'number', 0), after = get(p, 'cursor', 'string', ''), status = get(p, 'status', 'string', '');
    const ids = fs.readdirSync(BOXES).filter((i) => i > after && fs.existsSync(path.join(BOXES, i, 'record.json'))).sort();
    const page = !['', 'running'].includes(status) ? [] : limit > 0 ? ids.slice(0, limit) : ids;
    const more = page.length && page.length < ids.length ? { next: page.at(-1) } : {};
    return { sandboxes: page.map((i) => load({ sandbox_id: i }).record), ...more };
  },
  'sandbox.kill': (p) => {
    const { box } = load(p);
    for (const run of running.values()) if (run.sandboxId === p.sandbox_id) kill(run);
    fs.unlinkSync(path.join(box, 'record.json')); // from here on it is gone for everybody
    fs.rmSync(box, { recursive: true, force: true });
    return {};
  },
  'exec.run': execRun,
  'files.read': (p) => {
    const fd = fs.openSync(regular(p), 'r');
    try {
      const data = readAt(fd, get(p, 'offset', 'number', 0), Math.min(get(p, 'length', 'number', LINE_LIMIT), LINE_LIMIT));
      return { content_b64: data.toString('base64') };
    } finally {
      fs.closeSync(fd);
    }
  },
  'files.write': (p) => {
    const place = regular(p), text = get(p, 'content_b64', 'string'), data = Buffer.from(text, 'base64');
    if (data.toString('base64') !== text) throw new Failure(-32602, 'content_b64 is not base64');
    fs.mkdirSync(path.dirname(place), { recursive: true });
    fs.writeFileSync(place, data, { flag: p.append ? 'a' : 'w' });
    if (p.mode != null) fs.chmodSync(place, get(p, 'mode', 'number') & 0o777);
    return {};
  },
  'files.list': (p) => {
    const { root, place } = inside(p);
    return { entries: fs.readdirSync(place).sort().map((name) => entry(root, path.join(place, name))) };
  },
  'files.stat': (p) => {
    const { root, place } = inside(p, 'path', false);
    return entry(root, place);
  },
  'files.mkdir': (p) => {
    fs.mkdirSync(inside(p).place, { recursive: true });
    return {};
  },
  'files.remove': (p) => {
    const { root, place } = inside(p, 'path', false);
    if (place === root) throw new Failure(-32000, "the root of a sandbox can't be removed", { sdk_code: 'E4002' });
    fs.rmSync(place, { recursive: true });
    return {};
  },
  'files.move': (p) => {
    const { root, place: from } = inside(p, 'source', false), { place: to } = inside(p, 'destination', false);
    fs.lstatSync(from); // missing: said before anything else
    if (from === root || (to + '/').startsWith(from + '/') || (from + '/').startsWith(to + '/'))
      throw new Failure(-32000, `${p.source} can't be moved to ${p.destination}`);
    if (fs.lstatSync(to, { throwIfNoEntry: false })) {
      if (!p.overwrite) throw new Failure(-32000, `${p.destination} exists`);
      fs.rmSync(to, { recursive: true });
    }
    fs.mkdirSync(path.dirname(to), { recursive: true });
    fs.renameSync(from, to);
    return {};
  },
};

// The error of the protocol for whatever was thrown.
function errorOf(e) {
  if (e instanceof Failure) return e.error;
  if (e.code === 'ENOENT') return { code: -32002, message: 'no such file or directory', data: { sdk_code: 'E4001' } };
  if (['EACCES', 'EPERM'].includes(e.code)) return { code: -32000, message: 'permission denied', data: { sdk_code: 'E4002' } };
  return constants.errno[e.code] ? { code: -32000, message: e.code } : { code: -32602, message: String(e) };
}

async function answer({ id, method, params }) {
  const run = { sandboxId: params?.sandbox_id, child: null };
  let reply;
  try {
    const known = [method, String(method).split('.')[0]].find((name) => Object.hasOwn(LACKING, name));
    const lacking = LACKING[known];
    if (!Object.hasOwn(METHODS, method)) {
      if (lacking) throw new Failure(-32003, `${method} is not supported`, { details: { feature: lacking } });
      throw new Failure(-32601, `there is no method ${method}`);
    }
    if (method === 'exec.run') running.set(id, run);
    const result = METHODS[method](params ?? {}, run);
    reply = { result: result instanceof Promise ? await result : result };
  } catch (e) {
    reply = { error: errorOf(e) };
  }
  running.delete(id);
  let line = JSON.stringify({ jsonrpc: '2.0', id, ...reply });
  if (Buffer.byteLength(line) > LINE_LIMIT)
    line = JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: 'the answer is longer than 8 MiB' } });
  process.stdout.write(line + '\n');
  if (method === 'shutdown') stop();
}

function stop() {
  running.forEach(kill);
  process.stdin.destroy();
}

function take(line) {
  if (!line.trim()) return;
  const request = JSON.parse(line);
  if (request.method === '$/cancel') running.has(request.params.id) && kill(running.get(request.params.id));
  else if ('id' in request) answer(request);
}

// Lines end with \n only: readline would also split at characters that JSON allows inside strings.
let parts = [];
fs.mkdirSync(BOXES, { recursive: true, mode: 0o700 });
process.stdin.on('end', stop).on('data', (chunk) => {
  let from = 0;
  for (let at; (at = chunk.indexOf(10, from)) >= 0; from = at + 1) {
    take(Buffer.concat([...parts, chunk.subarray(from, at)]).toString('utf8'));
    parts = [];
  }
  parts.push(chunk.subarray(from));
});
