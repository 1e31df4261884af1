// What is around every page: which page the address names, navigation, search, login, what the gateway's state is.

import { html, useEffect, useRef, useState } from "./vendor/preact_htm.js";
import { DatabasePage, FunctionPage, kindText, nameLink, SearchPage, StartPage } from "./catalog.js";
import { CostPage } from "./cost.js";
import { Dialog, link, sentence, shownName } from "./parts.js";
import { call, learnOffers, logIn, logOut, onSession, passwordHeader, session } from "./session.js";
import { PartitionPage } from "./partition.js";
import { TablePage } from "./table.js";
import { t } from "./texts.js";
import { choose, theme, THEMES } from "./theme.js";
import { WaitsPage } from "./waits.js";

const SEARCHED = 20;
const SEARCH_MILLISECONDS = 80;
const BACK_SHOWN_MILLISECONDS = 4000;

const PAGES = {
  "": StartPage,
  d: DatabasePage,
  t: TablePage,
  p: PartitionPage,
  f: FunctionPage,
  search: SearchPage,
  waits: WaitsPage,
  cost: CostPage,
};

/** The parts of the address behind #/, and what is behind its question mark. */
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  try {
    return { parts: path.split("/").map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
  } catch {
    return { parts: ["?"], query: new URLSearchParams() };
  }
}

/** The parts of an address that name its page; a tab is none of them. */
function pageOf(parts) {
  return parts.slice(0, parts[0] === "p" ? 4 : 3);
}

export function Frame() {
  const [at, setAt] = useState(route());
  const [, renew] = useState(0);
  const main = useRef(null);
  const [isBack, setBack] = useState(false);
  useEffect(() => {
    const moved = () => {
      const before = route.last;
      const next = route();
      route.last = pageOf(next.parts).join("/");
      setAt(next);
      if (route.last !== before) {
        main.current?.focus({ preventScroll: true });
        scrollTo(0, 0);
      }
    };
    route.last = pageOf(at.parts).join("/");
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    let wasReachable = true;
    return onSession(() => {
      if (session.isReachable && !wasReachable) {
        setBack(true);
        setTimeout(setBack, BACK_SHOWN_MILLISECONDS, false);
      }
      wasReachable = session.isReachable;
      renew((number) => number + 1);
    });
  }, []);
  const [first, ...names] = at.parts;
  const Page = Object.hasOwn(PAGES, first) ? PAGES[first] : null;
  useEffect(() => {
    document.title = [names.slice(0, 2).filter(Boolean).map(shownName).join(".") || { waits: t.navWaits, cost: t.navCost }[first], t.product]
      .filter(Boolean)
      .join(" · ");
  }, [at]);
  if (session.asks === "first") return html`<${Login} />`;
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.focus())}>${t.skip}</a>
    <header class="top"><div class="strip">
      <a class="brand" href="#/" aria-label="${t.product}: ${t.navStart}"><img src="icon.svg" alt="" width="24" height="24" /> <span>${t.product}</span></a>
      <nav aria-label=${t.nav}>
        ${[
          ["", t.navStart],
          ["waits", t.navWaits],
          ["cost", t.navCost],
        ].map(([page, title]) => html`<a href="#/${page}" aria-current=${first === page ? "page" : undefined}>${title}</a>`)}
      </nav>
      <${Search} />
      <${You} onTheme=${() => renew((number) => number + 1)} />
    </div></header>
    <div class="notes" aria-live="polite">
      ${!session.isReachable && html`<p class="note bad">${t.unreachable}</p>`}
      ${session.isReachable && isBack && html`<p class="note good">${t.back}</p>`}
    </div>
    <main id="main" ref=${main} tabindex="-1">
      ${Page ? html`<${Page} key=${pageOf(at.parts).join("/")} names=${names} query=${at.query} />` : html`<p class="none">${t.noPage}</p>`}
    </main>
    ${session.asks === "expired" && html`<${Dialog} title=${t.loginExpired}><p>${t.loginExpiredText}</p><${LoginForm} /></${Dialog}>`}`;
}

/** Who is logged in, and what is theirs: light or dark, leaving. */
function You({ onTheme }) {
  return html`<div class="you">
    <button class="quiet" popovertarget="you" aria-haspopup="true" title=${t.you(session.user)}><bdi>${session.user}</bdi> <span aria-hidden="true">▾</span></button>
    <div id="you" popover="auto" class="menu">
      <p class="soft">${t.you(session.user)}</p>
      <fieldset>
        <legend>${t.theme}</legend>
        ${THEMES.map((each) => html`<label class="choice"><input type="radio" name="theme" value=${each} checked=${theme() === each} onChange=${() => (choose(each), onTheme())} /> ${t.themes[each]}</label>`)}
      </fieldset>
      <button onClick=${logOut}>${t.logout}</button>
    </div>
  </div>`;
}

function Login() {
  useEffect(() => {
    learnOffers();
  }, []);
  return html`<main class="login">
    <h1><img src="icon.svg" alt="" width="40" height="40" /> ${t.product}</h1>
    <${LoginForm} />
  </main>`;
}

function LoginForm() {
  const [by, setBy] = useState("password");
  const [user, setUser] = useState(session.user);
  const [secret, setSecret] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const ways = [["password", t.byPassword], ["token", t.byToken], ...(session.offersTickets ? [["ticket", t.byTicket]] : [])];
  async function go(event) {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    const header = { password: () => passwordHeader(user, secret), token: () => `Bearer ${secret.trim()}`, ticket: () => "" }[by]();
    const name = by === "password" ? user : t[by === "token" ? "byToken" : "byTicket"];
    try {
      setProblem((await logIn(name, header)) ?? "");
    } catch (error) {
      setProblem(sentence(error));
    }
    setBusy(false);
  }
  return html`<form class="login-form" onSubmit=${go}>
    <fieldset>
      <legend>${t.loginBy}</legend>
      ${ways.map(
        ([way, title]) => html`<label class="choice"><input type="radio" name="by" value=${way} checked=${by === way} onChange=${() => setBy(way)} /> ${title}</label>`,
      )}
    </fieldset>
    ${by === "password" &&
    html`<label>${t.loginUser}<input name="user" autocomplete="username" autofocus required value=${user} onInput=${(event) => setUser(event.target.value)} /></label>
      <label>${t.loginPassword}<input name="password" type="password" autocomplete="current-password" value=${secret} onInput=${(event) => setSecret(event.target.value)} /></label>`}
    ${by === "token" &&
    html`<label>${t.loginToken}<input name="token" type="password" autocomplete="off" required value=${secret} onInput=${(event) => setSecret(event.target.value)} /></label>`}
    ${by === "ticket" && html`<p>${t.ticketText}</p>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <p class="buttons"><button class="primary" disabled=${isBusy}>${t.loginGo}</button></p>
    <p class="soft">${t.loginKept}</p>
  </form>`;
}

/** Search as you type, a combobox: arrows choose, Enter opens, Escape closes. */
function Search() {
  const [text, setText] = useState("");
  const [found, setFound] = useState(null);
  const [chosen, setChosen] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  const field = useRef(null);
  const asked = useRef(0);
  useEffect(() => {
    const wanted = text.trim();
    const turn = ++asked.current;
    if (!wanted) return setFound(null);
    const timer = setTimeout(async () => {
      try {
        const names = await call("search_names", { text: wanted, max_names: SEARCHED });
        if (turn === asked.current) setFound({ names });
      } catch (error) {
        if (turn === asked.current) setFound({ names: [], error });
      }
      if (turn === asked.current) setChosen(-1);
    }, SEARCH_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    const slash = (event) => {
      if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
        event.preventDefault();
        field.current.focus();
      }
    };
    addEventListener("keydown", slash);
    return () => removeEventListener("keydown", slash);
  }, []);
  const names = found?.names ?? [];
  function open(address) {
    location.hash = address;
    setText("");
    setOpen(false);
    field.current.blur();
  }
  function pressed(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setChosen(names.length ? (chosen + step + names.length + (chosen < 0 && step < 0 ? 1 : 0)) % names.length : -1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (chosen >= 0) open(nameLink(names[chosen]));
      else if (text.trim()) open(link("search", text.trim()));
    } else if (event.key === "Escape") {
      setOpen(false);
    }
  }
  const isShown = isOpen && found !== null;
  return html`<search class="search" onFocusOut=${(event) => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}>
    <input
      ref=${field}
      type="search"
      role="combobox"
      aria-label=${t.search}
      aria-expanded=${isShown ? "true" : "false"}
      aria-controls="found"
      aria-autocomplete="list"
      aria-activedescendant=${chosen >= 0 && isShown ? `found-${chosen}` : undefined}
      placeholder=${t.searchShort}
      title=${t.searchHint}
      value=${text}
      onInput=${(event) => (setText(event.target.value), setOpen(true))}
      onFocus=${() => setOpen(true)}
      onKeyDown=${pressed}
    />
    <div id="found" role="listbox" aria-label=${t.search} class="found" hidden=${!isShown || !names.length}>
      ${names.map(
        (each, index) => html`<div id="found-${index}" role="option" aria-selected=${index === chosen ? "true" : "false"} onMouseDown=${(event) => (event.preventDefault(), open(nameLink(each)))}>
          <bdi>${each.name ? html`<span class="soft">${shownName(each.db_name)}.</span>${each.name}` : shownName(each.db_name)}</bdi>
          <span class="soft">${kindText(each.kind)}</span>
        </div>`,
      )}
    </div>
    ${isShown && !names.length && html`<p class="found" role="status">${found.error ? sentence(found.error) : t.searchNone(text.trim())}</p>`}
    <span class="unseen" role="status">${isShown && names.length ? t.found(names.length) : ""}</span>
  </search>`;
}
