import { Base } from './base';

/** interface Commented {} */
export interface Shape<T = unknown> extends Base {
  readonly name: string;
  area(): number;
  scale(by: number): Shape<T>;
}

export type Point = { x: number; y: number };
type Visit<T> = (p: T) => void;
export type Kind =
  | 'circle'
  | 'square';

export enum Color { Red, Green = 'green' }

const enum Size {
  Small = 1,
  Large,
}

export const MAX_SIDES: number = 12;
let counter: Map<string, number> = new Map<string, number>();
export const area = (r: number): number => Math.PI * r * r;

export abstract class Drawing<T extends Shape> implements Base {
  private static count = 0;
  protected readonly items: T[] = [];

  constructor(private readonly name: string, public depth: number = 0) {
    super();
  }

  get size(): number { return this.items.length; }

  set size(n: number) { this.items.length = n; }

  public async load<K extends keyof T>(key: K): Promise<T[K] | undefined> {
    return undefined;
  }

  abstract draw(): void;

  static of(...names: string[]): void {}

  private map(fn: (x: T) => { y: number }): void {
    if (fn) { return; }
  }
}

@Component({ selector: 'x', template: `class Hidden {}` })
export class View {
  @Input() title = 'class A {';

  render(): string { return `<div>${this.title}</div>`; }
}

export function parse(text: string | null, deep?: boolean): Point {
  return { x: 1, y: 2 };
}

export default function main(): void {}

namespace Geometry {
  export function distance(a: Point, b: Point): number { return 0; }
  export class Grid {
    cell(x: number): void {}
  }
  export const unit = 1;
}

declare module 'other' {
  export function external(x: number): string;
}

