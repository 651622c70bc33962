// Copies the address of this page with the whole scenario, switches between light and dark, and tells the browser which
// language the page is in. Streamlit keeps a chosen theme per path of the address and reads it while loading.
export default function ({ parentElement, data }) {
  document.documentElement.lang = data.language;
  const status = parentElement.querySelector("[role=status]");
  const copy = parentElement.querySelector(".copy");
  copy.textContent = data.copy;
  copy.onclick = async () => {
    const address = `${location.origin}${location.pathname}?${data.query}`;
    try {
      await navigator.clipboard.writeText(address);
      status.textContent = data.copied;
      setTimeout(() => { status.textContent = ""; }, 1800);
    } catch {
      status.textContent = `${data.manual} ${address}`;
    }
  };
  const theme = parentElement.querySelector(".theme");
  theme.setAttribute("aria-label", data.theme);
  theme.title = data.theme;
  theme.onclick = () => {
    const text = getComputedStyle(theme).color.match(/\d+/g).slice(0, 3).map(Number);
    const next = text[0] + text[1] + text[2] > 384 ? "Light" : "Dark";
    const root = location.pathname.replace(/[^/]*$/, "");
    for (const path of [location.pathname, root, ...data.paths.map((path) => root + path)]) {
      localStorage.setItem(`stActiveTheme-${path}-v2`, JSON.stringify(next));
    }
    location.reload();
  };
}
