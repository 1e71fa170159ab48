"""One self-contained HTML page about runs: ``rnnlab report``.

build.py       the page: what its template is given, and the file
axes.py        charts: from curves to places on axes
captioned.py   images with captions, and the attention of each word
translated.py  sentences with translations, and the attention of each word
words.py       words with attention weights, which both have in common
page.html, style.css, page.js
"""
