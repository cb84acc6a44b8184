// The locks of packages of npm; README.md tells what a peer is asked, and what it answers.
// usage: NODE_PATH=DIRECTORY node peer.js LIBRARY NAME TTL-MS SOCKET…
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');

const Redis = require('ioredis');

// Not by require: not every package lets others see its package.json.
const version = (name) => {
  const about = fs.readFileSync(path.join(process.env.NODE_PATH, name, 'package.json'));
  return JSON.parse(about).version.replace(/^v/, '');
};

// The retry delay, in milliseconds.
const RETRY = 30;

// A lock is refused with an error of this name; any other error is a defect.
const REFUSAL = 'ExecutionError';
async function succeeds(promise) {
  try {
    await promise;
    return true;
  } catch (error) {
    if (error.name === REFUSAL) return false;
    throw error;
  }
}

class RedlockLock {
  constructor(name, ttl, clients) {
    const { default: Redlock } = require('redlock');
    this.key = name;
    this.version = `redlock ${version('redlock')}, ioredis ${version('ioredis')}`;
    this.ttl = ttl;
    const settings = { retryCount: 0, retryDelay: RETRY, retryJitter: RETRY / 3 };
    this.redlock = new Redlock(clients, settings);
  }

  async acquire(blocking) {
    // As often as it tries by itself, again and again. What a try got of a split vote it keeps
    // until the last has failed: those that never end would keep each other out.
    for (;;) {
      const attempt = this.redlock.acquire([this.key], this.ttl, { retryCount: blocking ? 10 : 0 });
      if (await succeeds(attempt)) {
        this.lock = await attempt;
        return true;
      }
      if (!blocking) return false;
    }
  }

  extend() {
    return succeeds(this.lock.extend(this.ttl).then((lock) => { this.lock = lock; }));
  }

  release() { return succeeds(this.lock.release()); }
}

// Mutex on one server, RedlockMutex on several. It extends by a timer of its own, whose body is
// called here instead.
class Semaphore {
  constructor(name, ttl, clients) {
    const { Mutex, RedlockMutex } = require('redis-semaphore');
    this.key = `mutex:${name}`;
    this.version = `redis-semaphore ${version('redis-semaphore')}, ioredis ${version('ioredis')}`;
    this.make = (acquireAttemptsLimit) => {
      const options = {
        lockTimeout: ttl, acquireTimeout: Infinity, acquireAttemptsLimit, retryInterval: RETRY,
        refreshInterval: 0, onLockLost: () => {},
      };
      return clients.length === 1
        ? new Mutex(clients[0], name, options)
        : new RedlockMutex(clients, name, options);
    };
  }

  acquire(blocking) {
    this.mutex = this.make(blocking ? Infinity : 1);
    return this.mutex.tryAcquire();
  }

  async extend() {
    await this.mutex._processRefresh();
    return this.mutex.isAcquired;
  }

  async release() {
    await this.mutex.release();  // does not tell
    return true;
  }
}

const LIBRARIES = { redlock: RedlockLock, 'redis-semaphore': Semaphore };

// Reads a number and writes one more; fails if another process is at it.
function countOnce(file) {
  fs.closeSync(fs.openSync(`${file}.inside`, 'wx'));
  fs.writeFileSync(file, String(Number(fs.readFileSync(file)) + 1));
  fs.appendFileSync(`${file}.log`, 'peer\n');
  fs.unlinkSync(`${file}.inside`);
}

const answer = (line) => fs.writeSync(1, `${line}\n`);

async function main([library, name, ttl, ...sockets]) {
  const clients = sockets.map((socket) => new Redis({ path: socket }));
  const lock = new LIBRARIES[library](name, Number(ttl), clients);
  answer(`ready ${lock.key} ${lock.version}`);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, file] = line.split(' ');
    if (command === 'try') {
      answer((await lock.acquire(false)) ? 'held' : 'busy');
    } else if (command === 'wait') {
      if (!(await lock.acquire(false))) {
        answer('waiting');
        await lock.acquire(true);
      }
      answer('held');
    } else if (command === 'extend') {
      answer((await lock.extend()) ? 'extended' : 'lost');
    } else if (command === 'release') {
      answer((await lock.release()) ? 'released' : 'lost');
    } else if (command === 'count') {
      let turns = 0;
      for (; !fs.existsSync(`${file}.enough`); ++turns) {
        await lock.acquire(true);
        countOnce(file);
        await lock.release();
      }
      answer(`counted ${turns}`);
    }
  }
  for (const client of clients) client.disconnect();
}

main(process.argv.slice(2));
