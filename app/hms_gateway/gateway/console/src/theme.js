// Light or dark: the system's choice, or the reader's, which this browser keeps.

const KEPT = "hms-gateway.theme";
export const THEMES = ["system", "light", "dark"];

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null; // A browser that keeps nothing for this page.
  }
}

export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

export function choose(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    if (name === "system") localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, name);
  } catch {
    // It holds until the page is left.
  }
}

if (THEMES.includes(kept())) choose(kept());
