"""Charts: rows in, an Altair chart out. They take results by their methods, and import none of them.

theme   colours, texts and limits of size of all charts; alone imports Altair
plots   the plots of `fastndcg.plot`
"""
