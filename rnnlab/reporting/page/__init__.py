"""One self-contained HTML page about runs: ``rnnlab report``.

build.py       the page: the variables of its template, and the file
axes.py        charts: from curves to positions on axes
captioned.py   images with captions, and the attention of each word
translated.py  sentences with translations, and the attention of each word
written.py     text that language models have written
words.py       words with attention weights, which both use
page.html, style.css, page.js
"""
