"""The words with a meaning of their own, which every vocabulary begins with."""

SPECIAL_WORDS = ("<NULL>", "<START>", "<END>", "<UNK>")
