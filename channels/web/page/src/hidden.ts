// Invisible characters made visible, so that people read what is really there.

// Characters that have no width, or look like a space, or otherwise leave no mark. Spaces, line breaks and tabs stay.
const hidden = /(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800\ufffc\u{16fe4}]/gu;

// showHidden replaces invisible characters with escapes, such as those that change the direction of the text.
export function showHidden(text: string): string {
  return text.replace(hidden, (sign) => {
    const code = sign.codePointAt(0) ?? 0;
    return code > 0xffff ? "\\U" + code.toString(16).padStart(8, "0") : "\\u" + code.toString(16).padStart(4, "0");
  });
}
