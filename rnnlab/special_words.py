"""The special words with which every vocabulary begins."""

SPECIAL_WORDS = ("<NULL>", "<START>", "<END>", "<UNK>")
