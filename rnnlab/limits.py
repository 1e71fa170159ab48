"""Limits on the memory that a file may request, so that a small or damaged file cannot fill the memory.

Every reader compares the sizes that a file declares with these numbers before it allocates memory. They are
far above the needs of normal data, and no option changes them.
"""

# The maximum expansion of compressed data, in gzip and in compressed HDF5. Text and features expand by a
# factor of 10, padded captions by 30. Files that are made to fill the memory reach 1,000.
EXPANSION = 100

# Below this size nothing is checked: small data may compress better, and they do no harm.
FREE_BYTES = 64 << 20

# A JSON file. The largest published one, dataset_coco.json, has 144 MB. In memory JSON takes up to 20 times
# its size.
JSON_BYTES = 512 << 20

# A line of text: of parallel text, a lexicon or word vectors. It is 64 characters for each number of a vector
# of VECTOR_SIZE, and a hundred times the longest sentence or method of the data sets.
LINE_BYTES = 4 << 20

# Numbers in a word vector. The largest published ones have 4,096.
VECTOR_SIZE = 1 << 16

# A word of word vectors in the binary format, where no line ends it.
WORD_BYTES = 1 << 16

# A string of an HDF5 file, such as the name of an image. Paths on Linux have at most 4,096 bytes.
STRING_BYTES = 1 << 16

# A recipe, and a line of it. Those that come with rnnlab have 3 kB and lines of 110 characters. The time to
# parse a dotted key grows with the square of its length: a key of 2,000 characters takes 0.06 s, and a recipe
# full of such keys 8 s.
RECIPE_BYTES = 256 << 10
RECIPE_LINE = 2000

# Tables within tables and arrays within arrays, in recipes and in keys of --set. No key of a recipe has more
# than 4 parts.
RECIPE_DEPTH = 16

# The maximum number of pixels per byte of an image file, and the number of pixels that is always allowed.
# JPEG has at most 57 pixels per byte, and photographs in PNG one. Pillow's Image.MAX_IMAGE_PIXELS also limits
# large files.
PIXELS_PER_BYTE = 200
FREE_PIXELS = 16 << 20

# Height and width of the input of an image classifier, because a batch of inputs is in memory. Few
# classifiers take more than 1,024.
INPUT_SIZE = 2048

# A downloaded picture.
DOWNLOAD_BYTES = 64 << 20

# A notebook. One with pictures has a few MB.
NOTEBOOK_BYTES = 50 << 20
