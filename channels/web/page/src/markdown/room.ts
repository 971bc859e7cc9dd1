// A Room says how many elements a text may still become.
export interface Room {
  left: number;
}
