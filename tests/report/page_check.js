// SPDX-License-Identifier: MIT
// Finds texts of the visible page that are too small, too faint, broken within words, outside their boxes, or
// overlapping. Text that the reader can scroll to is not outside. Evaluates to {count, wrong}.
(() => {
    const SMALLEST = 11, FAINTEST = 4.5, SLACK = 1.5;    // pixels, ratio of luminances (WCAG AA), pixels of rounding
    const WORDS = /(?<!\S)[\w.%]{2,20}(?!\S)/g;    // longer words and words with other characters may be broken
    const wrong = [];
    const texts = [];
    const intersect = (a, b) => ({left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
                                  right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom)});
    const isIn = (inner, outer) => inner.left >= outer.left - SLACK && inner.right <= outer.right + SLACK &&
                                   inner.top >= outer.top - SLACK && inner.bottom <= outer.bottom + SLACK;
    const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > SLACK &&
                              Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > SLACK;
    const scrolls = style => ["auto", "scroll"].includes(style.overflowX);
    const clips = style => style.overflowX !== "visible" || style.overflowY !== "visible";
    const remember = make => {
        const known = new Map();
        return element => {
            if (!known.has(element)) {
                known.set(element, make(element));
            }
            return known.get(element);
        };
    };
    // Returns the geometry of a box, and whether it scrolls, clips, and must contain its texts.
    const measure = remember(element => {
        const style = getComputedStyle(element);
        return {edge: element.getBoundingClientRect(), scrolls: scrolls(style), clips: clips(style),
                holds: style.display !== "inline"};
    });
    const parse = color => {
        const parts = color.match(/[\d.]+/g).map(Number);
        return {rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1};
    };
    const luminance = rgb => {
        const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
        const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    };
    const background = remember(element => {
        for (let at = element; at; at = at.parentElement) {
            const color = parse(getComputedStyle(at).backgroundColor);
            if (color.alpha === 1) {
                return color.rgb;
            }
        }
        return [255, 255, 255];
    });
    const complain = (text, what) => wrong.push(`${what}: "${text.trim().replace(/\s+/g, " ").slice(0, 60)}"`);

    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode, parent = node.parentElement, text = node.textContent;
        const range = document.createRange();
        range.selectNodeContents(node);
        const rects = [...range.getClientRects()].filter(rect => rect.width > 0 && rect.height > 0);
        if (text.trim() === "" || rects.length === 0) {
            continue;
        }
        const style = getComputedStyle(parent), svg = parent.closest("svg");
        const scale = svg ? parent.getScreenCTM().d : 1;
        const size = Math.min(parseFloat(style.fontSize) * scale, ...rects.map(rect => rect.height));
        if (size < SMALLEST - 0.01) {
            complain(text, `${size.toFixed(1)} px high`);
        }
        const ratio = contrast(parse(svg ? style.fill : style.color).rgb, background(parent));
        if (ratio < FAINTEST) {
            complain(text, `contrast ${ratio.toFixed(2)}`);
        }
        if (rects.length > 1) {
            for (const word of text.matchAll(WORDS)) {
                range.setStart(node, word.index);
                range.setEnd(node, word.index + word[0].length);
                if (new Set([...range.getClientRects()].map(rect => Math.round(rect.top))).size > 1) {
                    complain(text, `"${word[0]}" in pieces`);
                }
            }
        }
        for (const line of rects) {
            // Clips the line to its boxes. For boxes around a scrolling box, the edge of the scrolling box counts
            // instead of the line.
            let rest = line, visible = line, scroller = null, isInside = true;
            for (let at = parent; at && at !== document.body; at = at.parentElement) {
                const box = measure(at);
                if (box.scrolls) {
                    visible = intersect(visible, box.edge);
                    rest = box.edge;
                    scroller = scroller || at;
                } else if (box.clips || box.holds && (!svg || !svg.contains(at))) {
                    isInside = isInside && isIn(rest, box.edge);
                }
            }
            const page = {left: 0, right: document.documentElement.clientWidth, top: -Infinity, bottom: Infinity};
            if (!isInside) {
                complain(text, "outside of its box");
            } else if (!isIn(rest, page)) {
                complain(text, "beyond the edge of the page");
            }
            texts.push({text, node, line, visible, scroller});
        }
    }
    // Texts in the same scrolling box are compared at their full position, others where they are visible.
    texts.sort((a, b) => a.line.top - b.line.top);
    texts.forEach((a, i) => {
        for (let j = i + 1; j < texts.length && texts[j].line.top < a.line.bottom; j++) {
            const b = texts[j], one = a.scroller === b.scroller;
            if (a.node !== b.node && overlap(one ? a.line : a.visible, one ? b.line : b.visible)) {
                complain(`${a.text} / ${b.text}`, "one upon another");
            }
        }
    });
    if (document.documentElement.scrollWidth > document.documentElement.clientWidth) {
        wrong.push(`the page is ${document.documentElement.scrollWidth} px wide`);
    }
    return {count: texts.length, wrong};
})()
