"""Numbers in words, chart style, SVG and notebook views."""
