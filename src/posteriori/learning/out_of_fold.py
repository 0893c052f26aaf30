"""Former path of out-of-fold predictions, now in `posteriori.model_selection`."""

from posteriori.deprecation import renamed_module_attributes

__getattr__ = renamed_module_attributes(
    __name__,
    {
        "OutOfFold": "posteriori.model_selection.OutOfFold",
        "out_of_fold": "posteriori.model_selection.out_of_fold",
    },
)
