"""Limits of what a file may ask for, so that a small or damaged file cannot fill the memory.

Every reader compares what a file asks for with these numbers before it allocates memory. They are far above
what honest data need, and no option changes them.
"""

# Bytes that one compressed byte may become, in gzip and in compressed HDF5. Text and features become 10 times
# as large, padded captions 30 times. Files made to fill the memory reach 1,000.
EXPANSION = 100

# Up to here nothing is compared: small data may compress better, and they do no harm.
FREE_BYTES = 64 << 20

# A JSON file. The largest that is published, dataset_coco.json, has 144 MB. In memory JSON takes up to 20
# times its size.
JSON_BYTES = 512 << 20

# A line of text: of parallel text, a lexicon or word vectors. It is 64 characters for each number of a vector
# of VECTOR_SIZE, and a hundred times the longest sentence or method of the data sets.
LINE_BYTES = 4 << 20

# Numbers in a word vector. The largest that are published have 4,096.
VECTOR_SIZE = 1 << 16

# A word of word vectors in the binary format, where no line ends it.
WORD_BYTES = 1 << 16

# A string of an HDF5 file, such as the name of an image. Paths of Linux have 4,096 bytes at most.
STRING_BYTES = 1 << 16

# A recipe, and a line of it. Those that come with rnnlab have 3 kB and lines of 110 characters. The time to
# parse a dotted key grows with the square of its length: one of 2,000 characters takes 0.06 s, a recipe that
# is full of them 8 s.
RECIPE_BYTES = 256 << 10
RECIPE_LINE = 2000

# Tables within tables and arrays within arrays, in recipes and in keys of --set. No key of a recipe has more
# than 4 parts.
RECIPE_DEPTH = 16

# Pixels of an image that one byte of its file may become, and pixels that no file is refused for. JPEG makes
# 57 at most of a byte, photographs in PNG one. Pillow's Image.MAX_IMAGE_PIXELS limits large files as well.
PIXELS_PER_BYTE = 200
FREE_PIXELS = 16 << 20

# Height and width of the input of an image classifier, of which a batch is in memory. Few take more than
# 1,024.
INPUT_SIZE = 2048

# A picture from an address.
DOWNLOAD_BYTES = 64 << 20

# A notebook. One with pictures has a few MB.
NOTEBOOK_BYTES = 50 << 20
