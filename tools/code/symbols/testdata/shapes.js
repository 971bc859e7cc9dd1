// class Commented {}
/* function commented() {} */
'use strict';

import fs from 'fs';

const MAX_SIDES = 12;
let counter = 0, other = 1;
var legacy = { a: 1, b: [1, 2] };
const pattern = /function hidden\(\) \{["'`]/g;
const half = counter / 2 / other;
const text = `class Hidden { ${[1].map((x) => { return `${x}`; })} }`

export default class Shape extends Base {
  #secret = 1;
  static sides = { few: 3 };

  constructor(name) {
    super(name);
    this.name = name;
    if (name) { this.empty = false }
  }

  static create(kind) { return new Shape(kind); }

  async load() {
    for (const x of [1, 2]) { await x; }
  }

  *walk() { yield 1 }

  draw(ctx = { a: () => {} }) {
    const inner = function () { return "}"; };
    return inner();
  }
}

class Circle extends Shape {
  area() {
    return Math.PI * this.r ** 2
  }
}

function draw(shape, { deep = true } = {}) {
  function nested(x) {
    return x;
  }
  return nested(shape);
}

export async function load(url) {
  return fetch(url).then((r) => r.json());
}

function* ids() { yield 1; }

const area = (r) => Math.PI * r * r;
const sum = async (a, b) => {
  return a + b;
};
const twice = function (x) { return 2 * x; };
export const single = x => x;

exports.render = function () {};

const handlers = {
  open() { return 1; },
  close: function () { return 2; },
};

(function () {
  function hiddenInside() {}
  hiddenInside();
})();

describe('shapes', () => {
  it('draws', function () {
    const a = 1;
  });
});

if (counter) {
  draw();
} else {
  load();
}
