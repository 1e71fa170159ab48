"""What recipes can be about, captioning and translation, a module each with the same functions.

open_data(table)                                                 -> data
new_model(config, data)                                          -> model
epoch_scores(config, data)                                       -> function of the model to scores, or None
evaluate(training, data, model, split, decoding=, evaluation=)   -> Evaluation
"""
