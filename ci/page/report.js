// Sorting, filtering, tooltips, copy buttons. Everything is readable without it.
(function () {
  'use strict';
  document.documentElement.className = 'js';
  var $ = function (s, r) { return Array.prototype.slice.call((r || document).querySelectorAll(s)); };

  // copy buttons: <div class=cmd><code>…</code><button>
  $('.cmd button').forEach(function (b) {
    b.addEventListener('click', function () {
      var code = b.parentNode.querySelector('code'), text = code.textContent;
      var done = function () { b.textContent = 'copied'; setTimeout(function () { b.textContent = 'copy'; }, 1400); };
      if (navigator.clipboard && window.isSecureContext) { navigator.clipboard.writeText(text).then(done); return; }
      var r = document.createRange(); r.selectNodeContents(code);       // file:// has no clipboard API
      var s = getSelection(); s.removeAllRanges(); s.addRange(r);
      try { document.execCommand('copy'); done(); } catch (e) { b.textContent = 'press ctrl c'; }
    });
  });

  // tooltips: any element with data-tip, by pointer or by keyboard focus
  var tip = document.createElement('div'); tip.id = 'tip'; tip.setAttribute('role', 'status'); document.body.appendChild(tip);
  function show(text, x, y) {
    tip.textContent = text; tip.style.opacity = 1;
    var w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - w - 6)) + 'px';
    tip.style.top = (y + 18 + h > innerHeight ? y - h - 10 : y + 18) + 'px';
  }
  function hide() { tip.style.opacity = 0; }
  document.addEventListener('pointermove', function (e) {
    var t = e.target.closest ? e.target.closest('[data-tip]') : null;
    if (t) show(t.getAttribute('data-tip'), e.clientX, e.clientY); else hide();
  });
  document.addEventListener('focusin', function (e) {
    var t = e.target.closest('[data-tip]'); if (!t) return hide();
    var b = t.getBoundingClientRect(); show(t.getAttribute('data-tip'), b.left, b.bottom - 14);
  });
  document.addEventListener('keydown', function (e) { if (e.key === 'Escape') hide(); });

  // sorting: <th data-sort="num|text">, value in td[data-v] or its text; families fold away while sorted
  $('table[data-sortable]').forEach(function (table) {
    var body = table.tBodies[0], original = $('tr', body), heads = $('th[data-sort]', table);
    heads.forEach(function (th) {
      th.tabIndex = 0; th.setAttribute('role', 'columnheader button');
      var go = function () {
        var now = th.getAttribute('aria-sort'), first = th.getAttribute('data-first') || 'descending';
        var other = first === 'descending' ? 'ascending' : 'descending';
        var next = !now ? first : now === first ? other : null;
        heads.forEach(function (o) { o.removeAttribute('aria-sort'); });
        var rows = original.slice(), col = th.cellIndex, num = th.getAttribute('data-sort') === 'num';
        if (next) {
          th.setAttribute('aria-sort', next);
          var val = function (r) {
            var c = r.cells[col], v = c ? (c.getAttribute('data-v') !== null ? c.getAttribute('data-v') : c.textContent) : '';
            return num ? (v === '' ? -Infinity : parseFloat(v)) : v;
          };
          var fam = rows.filter(function (r) { return r.classList.contains('fam'); });
          rows = rows.filter(function (r) { return !r.classList.contains('fam'); });
          rows = rows.map(function (r, i) { return [val(r), i, r]; }).sort(function (a, b) {
            var d = a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0; if (next === 'descending') d = -d; return d || a[1] - b[1];
          }).map(function (x) { return x[2]; });
          fam.forEach(function (r) { r.style.display = 'none'; });
        } else $('tr.fam', table).forEach(function (r) { r.style.display = ''; });
        rows.forEach(function (r) { body.appendChild(r); });
        if (!next) filter(table);
      };
      th.addEventListener('click', go);
      th.addEventListener('keydown', function (e) { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); go(); } });
    });
  });

  // filtering: <div class=tools data-for=ID> with buttons data-show="word word" (matches tr[data-s]) and one input
  function filter(table) {
    var bar = document.querySelector('.tools[data-for="' + table.id + '"]'); if (!bar) return;
    var on = bar.querySelector('button[aria-pressed=true]'), want = on ? on.getAttribute('data-show') : '';
    var q = bar.querySelector('input') ? bar.querySelector('input').value.trim().toLowerCase() : '', shown = 0, fam = null, alive = 0;
    $('tbody tr', table).forEach(function (r) {
      if (r.classList.contains('fam')) { if (fam) fam.style.display = alive ? '' : 'none'; fam = r; alive = 0; return; }
      var ok = (!want || (' ' + r.getAttribute('data-s') + ' ').indexOf(' ' + want + ' ') >= 0) &&
               (!q || r.textContent.toLowerCase().indexOf(q) >= 0);
      r.style.display = ok ? '' : 'none'; if (ok) { alive++; shown++; }
    });
    if (fam) fam.style.display = alive ? '' : 'none';
    var out = bar.querySelector('output'); if (out) out.textContent = shown + ' rows';
  }
  $('.tools').forEach(function (bar) {
    var table = document.getElementById(bar.getAttribute('data-for')); if (!table) return;
    $('button', bar).forEach(function (b) {
      b.addEventListener('click', function () {
        $('button', bar).forEach(function (o) { o.setAttribute('aria-pressed', o === b); }); filter(table);
      });
    });
    var input = bar.querySelector('input'); if (input) input.addEventListener('input', function () { filter(table); });
    filter(table);
  });
})();
