export class Drawing {
  handler = (e: Event): void => { this.draw(); };

  constructor(private readonly name: string, public items: { a: number }[] = []) {
    super();
  }

  async load<K extends keyof T>(key: K): Promise<T[K] | undefined> {
    const inner = { key, find: () => 1 };
    return undefined;
  }
}

@Component({ selector: 'x', template: `class Hidden {}` })
export class View {
  @Output()
  changed = new Emitter<string>()

  render(): string { return `<div>${this.title}</div>`; }

  get [Symbol.iterator]() { return 1 }
}

const make = async <T>(kind: T): Promise<T> => {
  return kind;
};
export const Button: React.FC<Props> = ({ label, onClick }) => <button onClick={() => onClick(label)}>{label}</button>

export function parse(text: string): Point;
export function parse(text: string | null, deep?: boolean): Point {
  return { x: 1, y: 2 };
}

declare function ambient(x: number): void;
export const store = createStore({
  state: () => ({ a: 1 }),
  actions: { go() { } },
});
export type { Other } from './other'
const { taken, out } = store
const last = class Named { method() {} }
