"""Local web pages for trained runs, where people caption photographs and translate sentences.

answerer        what all answers share: one search at a time, and its beam width
captioning      photographs, or pictures of a run's data, to captions
translation     sentences to translations
rendering       captions and translations as HTML, by the template answer.html
pages           the pages, by Gradio
application     a page as a web application, with style.css
server          its port, and Gradio's settings
"""
