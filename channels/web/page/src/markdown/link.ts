// Where links may lead.

// isWeb reports whether a link leads to the web.
export function isWeb(to: string): boolean {
  return /^https?:/i.test(to) && isSafe(to);
}

// isSafe reports whether a link leads to the web or to an email address.
export function isSafe(to: string): boolean {
  try {
    return /^(https?:\/\/|mailto:)/i.test(to) && ["http:", "https:", "mailto:"].includes(new URL(to).protocol);
  } catch {
    return false;
  }
}
