"""How well texts stand out from what is behind them (WCAG 2.2, contrast ratio), measured in the page."""

from typing import Final

CONTRAST_OF: Final = """
  const luminance = color => {
    const [r, g, b] = color.match(/[0-9.]+/g).slice(0, 3).map(Number)
      .map(c => c / 255).map(c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = element => {
    const color = getComputedStyle(element).backgroundColor;
    return color.endsWith(', 0)') ? behind(element.parentElement) : color;
  };
  const contrastsOf = selectors => {
    const found = {};
    for (const css of selectors) {
      const element = document.querySelector(css);
      if (element === null) continue;
      const [a, b] = [luminance(getComputedStyle(element).color), luminance(behind(element))];
      found[css] = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    }
    return found;
  };
"""
"""Defines `contrastsOf(selectors)`: the ratio for the first element of each selector that the page has."""
