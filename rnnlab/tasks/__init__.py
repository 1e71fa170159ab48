"""What recipes can be about, captioning, translation and classification, a module each with the same names.

TABLES                                                           the classes of its tables [data]
open_data(table)                                                 -> data
new_model(config, data)                                          -> model
epoch_scores(config, data)                                       -> function of the model to scores, or None
evaluate(training, data, model, split, decoding=, evaluation=)   -> Evaluation; without decoding of classes
"""
