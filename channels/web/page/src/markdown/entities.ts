// The names of characters in HTML, such as &copy;, in place of the library "entities", which has a table of them all: browsers
// have one.

const decoder = document.createElement("textarea");

// decodeHTMLStrict returns a text in which each reference that ends with a semicolon is the character that it stands for.
export function decodeHTMLStrict(text: string): string {
  return text.replace(/&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});/g, (reference) => {
    decoder.innerHTML = reference; // a textarea contains text alone
    return decoder.value;
  });
}
